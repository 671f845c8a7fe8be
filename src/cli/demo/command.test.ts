import { expect, test } from 'vitest'
import { reportOf } from './command.ts'

const atKill = { finished: new Set(['model lead 0', 'tool a']), running: new Set(['tool b']) }

function ran(pid: number, ...keys: readonly string[]) {
  return keys.map((key) => ({ pid, key }))
}

test('a call that was interrupted and made again is no repetition', () => {
  const executions = [...ran(1, 'model lead 0', 'tool a', 'tool b'), ...ran(2, 'tool b', 'model lead 1')]

  const report = reportOf(atKill, executions, 1)

  expect(report).toEqual({ calls: 4, executions: 5, processes: 2, kept: 2, repeated: 0, interrupted: 1, rerun: 1 })
})

test('a finished call that was made again is counted, in whatever process', () => {
  const executions = [...ran(1, 'model lead 0', 'tool a', 'tool a', 'tool b'), ...ran(2, 'model lead 0')]

  const report = reportOf(atKill, executions, 1)

  expect(report).toMatchObject({ repeated: 2, interrupted: 1, rerun: 0 })
})
