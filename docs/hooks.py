"""Brings the documents at the root of the repository into the site.

They stay where GitHub shows them, and there is no second copy. Links between
them become links of the site; links to anything else in the repository lead to
GitHub.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

REPOSITORY = "https://github.com/ahp-gateway/ahp-gateway"
PAGES = {
    "TENANTS.md": "tenants-in-full.md",
    "SECURITY.md": "security/policy.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "bench/README.md": "benchmark.md",
}
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")


def on_files(files, config):
    root = Path(config.config_file_path).parent
    for source, page in PAGES.items():
        text = (root / source).read_text(encoding="utf-8")
        text = LINK.sub(lambda m: f"]({target(root, source, page, m[1])}{m[2] or ''})", text)
        files.append(File.generated(config, page, content=text))
    return files


def target(root, source, page, link):
    """Returns where a link of a root document leads from its page."""
    if not link or "://" in link or link.startswith("mailto:"):
        return link
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if path in PAGES:
        return posixpath.relpath(PAGES[path], posixpath.dirname(page) or ".")
    if path.startswith("docs/"):
        return posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(page) or ".")
    if not (root / path).exists():
        raise SystemExit(f"{source}: a link leads to {link}, which is not in the repository")
    kind = "tree" if (root / path).is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{path}"
