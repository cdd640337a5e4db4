import time
from datetime import date, datetime, timezone

moment = datetime(2024, 3, 5, 7, 8, 9)
formats = (
    "%-d/%-m/%y", "%l:%M %P", "%k|%_H|%-H|%H", "%^a %^b %#Z", "%-I %p %#p %^P", "%q %+ %v %%P", "no directive", "", "100%", "%", "100%é",
    "%10Y|%3d|%_5d|%-5d|%5k|%10A|%05a", "%^c|%#c|%x|%X|%r|%R|%T|%D|%F|%h", "%C %g %G %V %u %w %U %W %j %e %s", "%Ey %Od %EQ %7Eq", "%n|%t|",
)
for format in formats:
    print(repr(format), repr(moment.strftime(format)), repr(time.strftime(format, moment.timetuple())))
print(f"{date(2024, 12, 1):%A %-d %B}", f"{moment.replace(hour=15):%l%P}", moment.replace(tzinfo=timezone.utc).strftime("%k %Z%z"))
print(time.strftime("%Z %z", (2024, 3, 5, 7, 8, 9, 1, 65, 0)), time.strftime("%Y|%C", (99, 1, 1, 0, 0, 0, 0, 1, -1)))
print(len(time.strftime("%9999d", time.gmtime(0))), time.strftime("%Y" * 1000, time.gmtime(0)) == "1970" * 1000)
print(repr(time.strftime("%z|%Z|%5z", time.strptime("2024", "%Y"))), repr(time.strftime("%z", (2024, 1, 1, 0, 0, 0, 0, 1, -1))))
time.strftime("%P", 5)
