import type { Grant } from 'legate'
import { expect, test } from 'vitest'
import { openRuntime } from '../../support/reading.ts'
import { asking, canaries, trying } from '../support/canary.ts'

/** A star among what is allowed passed what was forbidden above it. */
test.each<[string, Grant]>([
  ['tool:*', { use: ['tool:*'] }],
  ['tool:**', { use: ['tool:**'] }],
  ['every star there is', { use: ['tool:*', 'agent:*', 'model:*', 'exec:*', 'net:*', 'file.*:**'] }],
  ['its very name and a star', { use: ['tool:exec', 'tool:*'], delegate: ['tool:*'], ask: [], deny: [] }],
])('gemini-cli 22893: %s does not pass what the application forbids', async (_name, grant) => {
  const { ran, tools } = canaries('read', 'exec')
  const worker = trying('worker', { tools, grant })
  const runtime = openRuntime({ grant: { deny: ['tool:exec'] } })
  await runtime.run(worker, 'go' as never).result
  await runtime.run(
    asking(trying('below', { tools, grant }), grant.use?.includes('agent:*') ? grant : {}),
    'go' as never,
  ).result

  expect(ran).toEqual(['read', 'read'])
})

test('gemini-cli 17838: a subagent needs to be allowed like anything else: silence denies', async () => {
  const { ran, tools } = canaries('read')
  const host = asking(trying('worker', { tools }), { use: ['tool:*'] })
  await openRuntime().run(host, 'go' as never).result

  expect(ran).toEqual([])
})
