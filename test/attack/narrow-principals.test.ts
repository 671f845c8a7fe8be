import { describe, onTestFinished, test } from 'vitest'
import { memoryStore } from '../../src/core/store/memory/index.ts'
import { narrowLaws, narrowWorld } from '../support/narrow-laws.ts'
import { lasting } from '../support/stores.ts'

const kinds = [
  ['memory', () => ({ store: memoryStore(), drop: async () => undefined })] as const,
  ...lasting.map(([name, create]) => {
    const open = () => {
      const rows = create()
      return { store: rows.open(), drop: () => rows.drop() }
    }
    return [name, open] as const
  }),
]

describe.each(kinds)('I12: a narrower principal of the same id, on %s', (_, open) => {
  test.each(narrowLaws)('%s', async (_title, check) => {
    const { store, drop } = open()
    const runtime = narrowWorld(store)
    onTestFinished(async () => {
      await runtime.close()
      await drop()
    })
    await check(runtime)
  })
})
