import asyncio


async def fail():
    raise ValueError("in a task")


async def main():
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
    except* ValueError as errors:
        print(errors.exceptions)
    results = await asyncio.gather(fail(), asyncio.sleep(0, 1), return_exceptions=True)
    print(results)


asyncio.run(main())
