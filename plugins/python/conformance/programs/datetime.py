import calendar
from datetime import date, datetime, time, timedelta, timezone

d = datetime(2024, 2, 29, 12, 30, tzinfo=timezone.utc)
print(d, d + timedelta(days=366, seconds=5), d.isoformat(), d.strftime("%Y-%j %A %b %d %H:%M:%S %z %p"), d.timestamp())
print(date(2024, 12, 30).isocalendar(), datetime.strptime("2020-01-02 03:04", "%Y-%m-%d %H:%M"), calendar.monthrange(2023, 2))
print(timedelta(1.5), timedelta(days=-1, hours=3), datetime.fromisoformat("2024-01-01T00:00:00+02:00").utcoffset())
print(d.astimezone(timezone(timedelta(hours=-5, minutes=-30))), time(1, 2, 3).replace(hour=4), date.fromordinal(738000))
print((date(2024, 3, 1) - date(2023, 3, 1)).days, datetime.min, datetime.max, d.replace(tzinfo=None).weekday())
print(calendar.month(2024, 2), calendar.isleap(1900), repr(timedelta(microseconds=1)))
