import { describe, expect, test } from 'vitest'
import { openRuntime } from '../../support/reading.ts'
import { canaries, trying } from '../support/canary.ts'
import { hostWith, ways } from '../support/ways.ts'

/** One way to start a child kept the rules, a second one forgot them. The whole matrix is in doors.test.ts. */
describe.each(ways)('by %s inside a tool', (_name, start) => {
  test('GHSA-474h-prjg-mmw3: what the host may not pass on is not had by the second way', async () => {
    const { ran, tools } = canaries('read', 'exec')
    const runtime = openRuntime()
    const child = trying('child', { tools })
    await runtime.run(hostWith(start, { runtime, child, extra: { grant: { deny: ['tool:exec'] } } }), 'go' as never)
      .result

    expect(ran).toEqual(['read'])
  })
})
