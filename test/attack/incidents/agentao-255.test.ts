import type { Grant } from 'legate'
import { expect, test } from 'vitest'
import { openRuntime } from '../../support/reading.ts'
import { asking, canaries, trying } from '../support/canary.ts'

/** Two registries: what the model was shown was not what ran. Here both come from one decision. */
test.each<[string, Grant, Grant | undefined]>([
  ['openJiuwen 963: a policy that was not handed on', { deny: ['tool:b'] }, undefined],
  ['agentao 255: shown by one list, run by another', { delegate: ['tool:a', 'tool:c'] }, { use: ['tool:a', 'tool:b'] }],
  ['joule 362: hidden, and called by name', { deny: ['tool:b', 'tool:c'] }, undefined],
  ['pawwork 1132: shown to the child because its own list has it', { delegate: ['tool:a'] }, { use: ['tool:*'] }],
  ['koda 852: a copy of the decision in the child', { use: ['agent:*', 'tool:c'] }, { use: ['tool:b', 'tool:c'] }],
])('%s: what is shown is what runs', async (_name, host, child) => {
  const { ran, tools } = canaries('a', 'b', 'c')
  const worker = trying('worker', { grant: child, tools })

  await openRuntime().run(asking(worker, host), 'go' as never).result

  const shown = worker.model.requests[0]?.tools.map(({ name }) => name) ?? []
  expect(ran).toEqual(shown)
  expect(ran.length).toBeLessThan(3)
})
