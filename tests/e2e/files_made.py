"""Small files of each format, made by hand, and hostile ones."""

from __future__ import annotations

import io
import uuid
import zipfile
from typing import Any

_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)


def docx(text: str, padding: int = 0) -> bytes:
    """A Word document of one paragraph, with so many zero bytes of a picture beside it."""
    body = (
        '<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
        f"<w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>"
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("_rels/.rels", _RELATIONS)
        archive.writestr("word/document.xml", body)
        if padding:
            archive.writestr("word/media/picture.bin", b"\0" * padding)
    return out.getvalue()


def pdf(text: str) -> bytes:
    """A PDF of one line."""
    stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    return (
        b"%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 200]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>endobj\n"
        b"4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n"
        b"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 R>>\n"
        % (len(stream), stream)
    )


def multipart(files: list[tuple[str, bytes]], request: str | None = None, part: str = "files") -> tuple[bytes, str]:
    """(body, content type) of an upload."""
    mark = uuid.uuid4().hex
    parts: list[bytes] = []
    if request is not None:
        parts.append(f'--{mark}\r\nContent-Disposition: form-data; name="request"\r\n\r\n{request}\r\n'.encode())
    for name, data in files:
        head = f'--{mark}\r\nContent-Disposition: form-data; name="{part}"; filename="{name}"\r\n\r\n'
        parts.append(head.encode() + data + b"\r\n")
    return b"".join(parts) + f"--{mark}--\r\n".encode(), f"multipart/form-data; boundary={mark}"


def example(kind: str) -> Any:
    return _EXAMPLES[kind]


_EXAMPLES = {
    "notes.txt": b"The lighthouse keeper is called Tobias Grinde.",
    "notes.md": b"# Harbour\n\nThe lighthouse keeper is called Tobias Grinde.",
    "page.html": b"<html><head><style>p{}</style></head><body><p>The lighthouse keeper is called <b>Tobias Grinde</b>."
    b"</p><script>alert(1)</script></body></html>",
    "people.csv": b"post;name\nlighthouse keeper;Tobias Grinde\nbaker;Ana Reis\n",
    "people.json": b'{"lighthouse keeper": "Tobias Grinde"}',
    "letter.pdf": pdf("The lighthouse keeper is called Tobias Grinde."),
    "letter.docx": docx("The lighthouse keeper is called Tobias Grinde."),
}
