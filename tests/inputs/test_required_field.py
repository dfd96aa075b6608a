from __future__ import annotations

import pytest

from simindex.errors import InvalidInput
from simindex.inputs.document import Document
from simindex.inputs.required_field import having


@pytest.mark.parametrize("number", [1, 3, 100, 101, 250])
def test_a_named_field_that_no_document_has_is_refused(number: int) -> None:
    """Of the first hundred, or of all of fewer; nothing is given on before."""
    documents = [Document(str(line), "text", "f", line, row={"a": 1}) for line in range(number)]

    def lacks(document: Document) -> bool:
        return "b" not in (document.fields or {})

    found = having(documents, "b", "--id-field", lacks)
    with pytest.raises(InvalidInput, match="f:0 has no field 'b'") as caught:
        next(found)
    assert "has 'a'" in str(caught.value.remedy) and "--id-field" in str(caught.value.remedy)
    last = min(number, 100) - 1
    documents[last] = Document("x", "text", "f", last, row={"b": 1})
    assert list(having(documents, "b", "--id-field", lacks)) == documents


def test_no_documents_have_no_field() -> None:
    assert list(having([], "b", "--id-field", lambda document: True)) == []
