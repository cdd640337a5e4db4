from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

berlin, new_york, kolkata = map(ZoneInfo, ("Europe/Berlin", "America/New_York", "Asia/Kolkata"))
summer = datetime(2024, 7, 1, 12, tzinfo=berlin)
print(summer, summer.tzname(), summer.astimezone(new_york), summer.astimezone(kolkata).isoformat(), summer.astimezone(ZoneInfo("UTC")))
before = datetime(2024, 3, 10, 1, 59, tzinfo=new_york)
print(before, before + timedelta(minutes=1), (before.astimezone(timezone.utc) + timedelta(minutes=1)).astimezone(new_york))
print(datetime(2024, 11, 3, 1, 30, tzinfo=new_york).dst(), datetime(2024, 11, 3, 1, 30, fold=1, tzinfo=new_york).dst())
print(datetime(2050, 7, 1, tzinfo=berlin).utcoffset(), ZoneInfo("Europe/Berlin") is berlin, repr(berlin))
print(len(available_timezones()) > 500, {"Asia/Tokyo", "US/Pacific"} <= available_timezones())
try:
    ZoneInfo("Nowhere/City")
except ZoneInfoNotFoundError as error:
    print(error)
