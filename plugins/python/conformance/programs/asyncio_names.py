import asyncio


async def name():
    return asyncio.current_task().get_name()


async def main():
    print(await name())
    print(await asyncio.gather(name(), asyncio.create_task(name()), asyncio.create_task(name(), name="mine")))


asyncio.run(main())
