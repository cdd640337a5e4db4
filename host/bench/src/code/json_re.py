import json
import re

rows = [{"id": i, "name": f"user{i}", "mail": f"user{i}@example{i % 7}.org", "tags": ["a", "b"]} for i in range(200)]
text = json.dumps(rows)
back = json.loads(text)
pattern = re.compile(r'"mail": "([a-z0-9]+)@(example\d)\.org"')
hosts = {}
for user, host in pattern.findall(text):
    hosts.setdefault(host, []).append(user)
print(len(back), sorted((host, len(users)) for host, users in hosts.items()))
