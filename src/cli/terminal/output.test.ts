import { expect, onTestFinished, test, vi } from 'vitest'
import { write } from './output.ts'

test('a reader that is slow for long leaves no listener behind', async () => {
  const { stdout } = process
  const spy = vi.spyOn(stdout, 'write').mockImplementation(() => {
    setImmediate(() => stdout.emit('drain'))
    return false
  })
  onTestFinished(() => spy.mockRestore())
  const count = () => ['drain', 'close', 'error'].map((event) => stdout.listenerCount(event))
  const before = count()
  for (let at = 0; at < 20; at++) await write('some text')
  expect(count()).toEqual(before)
})
