import time
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

moment = datetime(2024, 3, 5, 7, 8, 9)
for format in ("%-d/%-m/%y", "%l:%M %P", "%k|%_H|%-H|%H", "%^a %^b %#Z", "%10Y", "%-I %p %#p", "%q %+ %v %%P", "no directive", ""):
    print(repr(format), repr(moment.strftime(format)), repr(time.strftime(format, moment.timetuple())))
print(f"{date(2024, 12, 1):%A %-d %B}", f"{moment.replace(hour=15):%l%P}", moment.replace(tzinfo=timezone.utc).strftime("%k %Z%z"))
try:
    time.strftime("%P", 5)
except TypeError as error:
    print(error)

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
