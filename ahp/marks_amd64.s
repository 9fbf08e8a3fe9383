#include "textflag.h"

// What a byte is compared with, sixteen times.
DATA quotes<>+0(SB)/8, $0x2222222222222222
DATA quotes<>+8(SB)/8, $0x2222222222222222
GLOBL quotes<>(SB), RODATA|NOPTR, $16
DATA slashes<>+0(SB)/8, $0x5C5C5C5C5C5C5C5C
DATA slashes<>+8(SB)/8, $0x5C5C5C5C5C5C5C5C
GLOBL slashes<>(SB), RODATA|NOPTR, $16
DATA controls<>+0(SB)/8, $0x1F1F1F1F1F1F1F1F
DATA controls<>+8(SB)/8, $0x1F1F1F1F1F1F1F1F
GLOBL controls<>(SB), RODATA|NOPTR, $16

// SIXTEEN leaves the special bytes among the sixteen at off in the low bits of
// special, and those beyond ASCII in those of foreign. A byte is a control
// character if it is the lesser of itself and 0x1F.
#define SIXTEEN(off, special, foreign) \
	MOVOU off(SI), X0      \
	MOVO X0, X1            \
	MOVO X0, X2            \
	MOVO X0, X3            \
	PMOVMSKB X0, foreign   \
	PCMPEQB X4, X1         \
	PCMPEQB X5, X2         \
	PMINUB X6, X3          \
	PCMPEQB X0, X3         \
	POR X1, X2             \
	POR X2, X3             \
	PMOVMSKB X3, special

// func marks(b *[64]byte) (special, foreign uint64)
TEXT ·marks(SB), NOSPLIT, $0-24
	MOVQ b+0(FP), SI
	MOVOU quotes<>(SB), X4
	MOVOU slashes<>(SB), X5
	MOVOU controls<>(SB), X6
	SIXTEEN(0, AX, BX)
	SIXTEEN(16, CX, DX)
	SHLQ $16, CX
	SHLQ $16, DX
	ORQ CX, AX
	ORQ DX, BX
	SIXTEEN(32, CX, DX)
	SHLQ $32, CX
	SHLQ $32, DX
	ORQ CX, AX
	ORQ DX, BX
	SIXTEEN(48, CX, DX)
	SHLQ $48, CX
	SHLQ $48, DX
	ORQ CX, AX
	ORQ DX, BX
	MOVQ AX, special+8(FP)
	MOVQ BX, foreign+16(FP)
	RET
