import type { AnyAgent } from 'legate'
import { describe, expect, test } from 'vitest'
import { openRuntime } from '../../support/reading.ts'
import { canaries, trying } from '../support/canary.ts'
import { hostWith, ways } from '../support/ways.ts'

/** A child in a wrapper was not known as one, and the check was left out. */
describe.each(ways)('by %s inside a tool', (_name, start) => {
  test('agentscope-java 2477: also when the child is wrapped in another object that looks like it', async () => {
    const { ran, tools } = canaries('read', 'exec')
    const runtime = openRuntime()
    const child = trying('child', { tools })
    const wrapped = Object.create(child) as AnyAgent
    const host = hostWith(start, { runtime, child: wrapped, extra: { grant: { deny: ['tool:exec'] } } })
    await runtime.run(host, 'go' as never).result

    expect(ran).not.toContain('exec')
  })
})
