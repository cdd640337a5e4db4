import asyncio


async def worker(name, delay, results):
    await asyncio.sleep(delay)
    results.append(name)
    return name


async def produce(queue):
    for item in range(3):
        await queue.put(item)
        await asyncio.sleep(0)
    await queue.put(None)


async def main():
    results = []
    print(await asyncio.gather(worker("slow", 0.03, results), worker("fast", 0.01, results)), results)
    queue = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        group.create_task(produce(queue))
        got = []
        while (item := await queue.get()) is not None:
            got.append(item)
    print(got)
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(10)
    except TimeoutError:
        print("timed out")
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 0.01)
    except asyncio.TimeoutError:
        print("timed out too")
    lock, semaphore = asyncio.Lock(), asyncio.Semaphore(2)
    async with lock, semaphore:
        print(lock.locked())
    task = asyncio.create_task(asyncio.sleep(100))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled")

    async def numbers():
        for number in range(3):
            yield number

    print([number async for number in numbers()])
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_later(0.005, future.set_result, "later")
    print(await future)


asyncio.run(main())
print(asyncio.run(asyncio.sleep(0, "again")))
