from zoneinfo import ZoneInfo

ZoneInfo("Nowhere/City")
