import { getEventListeners } from 'node:events'
import { describe, expect, test, vi } from 'vitest'
import { abortReason, isAbort, onAbort, within } from './abort.ts'
import { LegateError } from './error.ts'

describe('abortReason', () => {
  test('is the reason itself when that is an error', () => {
    const reason = new TypeError('stop')

    expect(abortReason(AbortSignal.abort(reason))).toBe(reason)
    expect(abortReason(AbortSignal.abort())).toMatchObject({ name: 'AbortError' })
  })

  test.each([
    ['the user left', 'the user left'],
    [null, 'null'],
    [{ message: 'why' }, 'why'],
  ])('any other reason %j becomes the cause of an error', (reason, message) => {
    const error = abortReason(AbortSignal.abort(reason))

    expect(error).toMatchObject({ code: 'aborted', message, cause: reason })
  })

  test('a signal that is not aborted still gives an error to throw', () => {
    expect(abortReason(new AbortController().signal)).toMatchObject({ code: 'aborted' })
  })
})

describe('isAbort', () => {
  test('is true for what an aborted signal throws', () => {
    expect(isAbort(AbortSignal.abort().reason)).toBe(true)
    expect(isAbort(new LegateError('aborted', 'x'))).toBe(true)
    expect(isAbort(Object.assign(new Error('x'), { name: 'AbortError' }))).toBe(true)
    expect(isAbort(abortReason(AbortSignal.abort('x')))).toBe(true)
  })

  test('is false for a timeout and for everything else', () => {
    const hostile = new Proxy(new Error('x'), {
      get() {
        throw new Error('hostile')
      },
    })
    for (const error of [
      new DOMException('x', 'TimeoutError'),
      new LegateError('run', 'x'),
      'AbortError',
      null,
      hostile,
    ]) {
      expect(isAbort(error)).toBe(false)
    }
  })
})

describe('onAbort', () => {
  test('calls once, when the signal aborts', () => {
    const controller = new AbortController()
    const run = vi.fn()
    onAbort(controller.signal, run)

    expect(run).not.toHaveBeenCalled()
    controller.abort()
    controller.abort()

    expect(run).toHaveBeenCalledExactlyOnceWith()
  })

  test('calls at once when the signal has aborted already', () => {
    const run = vi.fn()

    const remove = onAbort(AbortSignal.abort(), run)

    expect(run).toHaveBeenCalledTimes(1)
    remove()
  })

  test('a signal has one listener for all who wait, and none after the last has left', () => {
    const controller = new AbortController()
    const run = vi.fn()
    const removers = [onAbort(controller.signal, run), onAbort(controller.signal, run)]

    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1)
    for (const remove of removers) remove()

    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
    controller.abort()
    expect(run).not.toHaveBeenCalled()
  })

  test('without a signal nothing happens', () => {
    const run = vi.fn()

    onAbort(undefined, run)()

    expect(run).not.toHaveBeenCalled()
  })
})

describe('work within a time', () => {
  test('gives what the work gives in time, and fails as it does', async () => {
    await expect(within(Promise.resolve('done'), 1_000)).resolves.toBe('done')
    await expect(within('at once', 1_000)).resolves.toBe('at once')
    await expect(within(Promise.reject(new Error('no')), 1_000)).rejects.toThrow('no')
  })

  test('gives undefined when the work takes longer', async () => {
    await expect(within(new Promise<never>(() => undefined), 10)).resolves.toBeUndefined()
  })

  test('keeps no timer when the work is done in time', async () => {
    const set = vi.spyOn(globalThis, 'setTimeout')
    const clear = vi.spyOn(globalThis, 'clearTimeout')
    await within(Promise.resolve(), 987_654)
    const timer = set.mock.results[set.mock.calls.findIndex(([, ms]) => ms === 987_654)]?.value

    expect(timer).toBeDefined()
    expect(clear).toHaveBeenCalledWith(timer)
    vi.restoreAllMocks()
  })
})
