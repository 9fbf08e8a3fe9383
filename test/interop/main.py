"""Runs the tests of this folder, or those named, and says how many ran."""

import sys
import unittest

import wire


def main() -> int:
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(sys.argv[1:]) if sys.argv[1:] else loader.discover(".")
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    # A skipped test shows nothing, so it counts as one that failed.
    bad = {id_of(test) for test, _ in result.failures + result.errors + result.skipped}
    bad |= {id_of(test) for test in result.unexpectedSuccesses}
    print(f"{wire.validated()} messages were validated against the schemas")
    print(f"{max(0, result.testsRun - len(bad))} passed, {len(bad)} failed")
    return 0 if result.testsRun > 0 and not bad and wire.validated() > 0 else 1


def id_of(test) -> str:
    """The id of a test, or of the test that a subtest belongs to."""
    return getattr(test, "test_case", test).id()


if __name__ == "__main__":
    sys.exit(main())
