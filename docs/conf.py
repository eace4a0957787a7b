"""The documentation site: ``sphinx-build -W -n docs build/docs``; nothing is fetched."""

from __future__ import annotations

from importlib.util import find_spec

import memory

project = "erasable-memory"
author = "The erasable-memory authors"
copyright = author
release = version = memory.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
# Served from a folder, by hand or by a host of pages; no font or script comes from elsewhere.
html_theme = "furo"
html_title = project
html_show_sourcelink = False
html_copy_source = False

# Links to headings, as the pages use them where they are read as files.
myst_heading_anchors = 4

# The site needs the extra docs alone: the frameworks of the integrations are taken as they are
# where they are installed. google is in parts, of which some come with others: see docs/agents.md.
_FRAMEWORKS = ("agents", "langchain_core", "langgraph", "mcp", "pydantic")
autodoc_mock_imports = ["google", *(name for name in _FRAMEWORKS if find_spec(name) is None)]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
add_module_names = False
# Only names of ours have a page here; the standard library's are read elsewhere.
nitpick_ignore_regex = [(r"py:.*", r"(?!memory\.).*")]
