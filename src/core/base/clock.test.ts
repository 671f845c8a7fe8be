import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Allowance, systemClock } from './clock.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
})

afterEach(() => {
  vi.useRealTimers()
})

describe('systemClock', () => {
  test('tells the wall time', () => {
    expect(systemClock.now()).toBe(1_000_000)
    vi.advanceTimersByTime(5)
    expect(systemClock.now()).toBe(1_000_005)
  })

  test('rings once, at its time and not before', () => {
    const run = vi.fn()
    systemClock.at(1_000_100, run)

    vi.advanceTimersByTime(99)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledTimes(1)
    vi.advanceTimersByTime(10_000)
    expect(run).toHaveBeenCalledTimes(1)
  })

  test.each([0, -5, 1_000_000, Number.NaN, Number.NEGATIVE_INFINITY])('rings as soon as possible for %s', (time) => {
    const run = vi.fn()
    systemClock.at(time, run)

    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledTimes(1)
  })

  test('a cancelled alarm never rings, and cancelling again does nothing', () => {
    const run = vi.fn()
    const cancel = systemClock.at(1_000_010, run)

    cancel()
    cancel()

    vi.advanceTimersByTime(100)
    expect(run).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('waits longer than one timer can', () => {
    const days = 24 * 60 * 60 * 1000
    const run = vi.fn()
    systemClock.at(1_000_000 + 60 * days, run)

    vi.advanceTimersByTime(60 * days - 1)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledTimes(1)
  })

  test('a long alarm can be cancelled after it was armed again', () => {
    const run = vi.fn()
    const cancel = systemClock.at(1_000_000 + 2 ** 32, run)

    vi.advanceTimersByTime(2 ** 31 + 10)
    cancel()

    vi.advanceTimersByTime(2 ** 33)
    expect(run).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('where the clock is set back meanwhile, an alarm waits for no longer', () => {
    const run = vi.fn()
    systemClock.at(1_000_100, run)

    vi.setSystemTime(10_000)
    vi.advanceTimersByTime(99)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledTimes(1)
  })

  test('also where its timer was early', () => {
    const run = vi.fn()
    const rings: [() => void, number][] = []
    const set = vi
      .spyOn(globalThis, 'setTimeout')
      .mockImplementation(((...given: [() => void, number]) => rings.push(given)) as never)
    systemClock.at(1_000_100, run)
    vi.setSystemTime(10_000)
    vi.advanceTimersByTime(99)

    rings[0]?.[0]()
    set.mockRestore()

    expect(run).not.toHaveBeenCalled()
    expect(rings.map(([, ms]) => ms)).toEqual([100, 1])
  })

  test('where it is set forward, an alarm rings when its timer does', () => {
    const run = vi.fn()
    systemClock.at(1_000_100, run)

    vi.setSystemTime(5_000_000)
    vi.advanceTimersByTime(100)
    expect(run).toHaveBeenCalledTimes(1)
  })

  test('a timer that is early is waited for again', () => {
    const run = vi.fn()
    const ring: (() => void)[] = []
    const set = vi
      .spyOn(globalThis, 'setTimeout')
      .mockImplementation(((early: () => void) => ring.push(early)) as never)
    systemClock.at(1_000_100, run)

    vi.advanceTimersByTime(99)
    ring[0]?.()
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    ring[1]?.()
    expect(run).toHaveBeenCalledTimes(1)
    set.mockRestore()
  })

  test('Infinity means never and holds no timer', () => {
    systemClock.at(Number.POSITIVE_INFINITY, vi.fn())()

    expect(vi.getTimerCount()).toBe(0)
  })

  test('only with ref: false may the process end before the alarm', () => {
    vi.useRealTimers()
    const set = vi.spyOn(globalThis, 'setTimeout')
    const far = systemClock.now() + 60_000
    const cancels = [
      systemClock.at(far, vi.fn(), { ref: false }),
      systemClock.at(far, vi.fn(), { ref: true }),
      systemClock.at(far, vi.fn()),
    ]

    expect(set.mock.results.map(({ value }) => value.hasRef())).toEqual([false, true, true])

    for (const cancel of cancels) cancel()
    set.mockRestore()
  })
})

describe('an allowance', () => {
  test('so much at once, then so much with each second, and never more at once than at first', () => {
    const allowance = new Allowance(3, 2)
    const taken = (now: number) => [1, 2, 3, 4, 5].filter(() => allowance.take(1, now)).length

    expect([taken(0), taken(0), taken(1_000), taken(60_000), taken(0)]).toEqual([3, 0, 2, 3, 0])
  })
})
