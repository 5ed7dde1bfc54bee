"""Damaged input: real-looking texts of our own, cut, doubled, shuffled and spiked with nasty words."""

from __future__ import annotations

from hypothesis import strategies as st

NASTY = [
    b"", b"null", b"true", b"-1", b"0", b"1e308", b"-1e309", b"NaN", b"Infinity", b"9" * 400,
    b"18446744073709551616", b"\x00", b"\xff\xfe", b"\xc3\x28", b"\xef\xbb\xbf", b"\r\n", b"\n" * 50,
    b'"', b"'", b"{", b"}" * 3, b"[" * 600, b"]" * 3, b":", b",", b"\\u0000", b"\\ud800", b"\xe2\x80\xae",
    "\N{PILE OF POO}".encode(), b"!!python/object:os.system", b"&a [*a,*a]", b"<<: *a", b"---\n", b"%YAML 9.9\n",
    b"\x1b[31m", b"X", b"NV999", b"SYS", b"GPU0", b"GPU-", b"PCI:ffff:ff:ff.f", b"Xid (PCI:", b" Xid 154 ",
    b'{gpu="",', b"# TYPE x gauge\n", b"..", b"/../", b"a" * 5000, b"\t" * 100,
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, texts: list[bytes]) -> bytes:
    """One of `texts` after a few mutations."""
    data = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(0, 4))):
        at, until = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        match draw(st.sampled_from(["cut", "drop", "double", "spike", "flip", "move", "splice"])):
            case "cut":
                data = data[:until]
            case "drop":
                data = data[:at] + data[until:]
            case "double":
                data = data[:until] + data[at : at + 20_000] + data[until:]
            case "spike":
                data = data[:at] + draw(st.sampled_from(NASTY)) + data[at:]
            case "flip" if data:
                at = min(at, len(data) - 1)
                data = data[:at] + bytes([data[at] ^ draw(st.integers(1, 255))]) + data[at + 1 :]
            case "move":
                data = data[until:] + data[at:until] + data[:at]
            case "splice":
                data = data[:at] + draw(st.sampled_from(texts))[at:]
    return data
