import html
import urllib.parse as url
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

root = ET.fromstring('<a x="1"><b>t</b><b/><!-- c --></a>')
print([b.text for b in root.iter("b")], ET.tostring(root), root.find("b").text, root.attrib)
try:
    ET.fromstring("<a><b></a>")
except ET.ParseError as error:
    print(error)
print(html.escape("<&\">"), html.unescape("&eacute;&#39;"), url.quote("a b/é"), url.urlparse("http://x.y/z?q=1#f").query)
print(url.parse_qs("a=1&a=2&b="), url.urlencode({"a": "x y", "b": 1}), url.urljoin("http://a/b/c", "../d"))


class Titles(HTMLParser):
    def handle_data(self, data):
        print("data:", data.strip())


Titles().feed("<html><title>T</title><p>para &amp; text</p></html>")
