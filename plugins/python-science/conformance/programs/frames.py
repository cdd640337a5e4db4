import io

import pandas as pd

frame = pd.read_csv(io.StringIO("name,team,points\nAda,red,3\nBob,blue,5\nCem,red,4\n"))
print(frame.groupby("team")["points"].agg(["mean", "sum"]))
print(frame.sort_values("points", ascending=False).iloc[0].to_dict(), frame["points"].dtype)
print(frame.merge(pd.DataFrame({"team": ["red"], "city": ["Ankara"]}), on="team", how="left").to_json(orient="records"))
print(pd.date_range("2024-01-31", periods=3, freq="ME").strftime("%d.%m.").tolist(), pd.Series([1, None]).isna().tolist())
