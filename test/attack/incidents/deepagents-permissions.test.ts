import type { Grant } from 'legate'
import { expect, test } from 'vitest'
import { openRuntime } from '../../support/reading.ts'
import { asking, canaries, trying } from '../support/canary.ts'

/** A subagent's permissions took the place of its host's. Here both are heard, whichever is said where. */
const NAMES = ['read', 'write', 'exec'] as const
const rules: readonly Grant[] = [
  {},
  { deny: ['tool:exec'] },
  { use: ['agent:*', 'tool:read'] },
  { use: ['agent:*', 'tool:*'], deny: ['tool:w*'] },
  { use: ['agent:*'], delegate: ['tool:read', 'tool:write'] },
]
const may: readonly (readonly string[])[] = [
  ['read', 'write', 'exec'],
  ['read', 'write'],
  ['read'],
  ['read', 'exec'],
  [],
]
const mayPass: readonly (readonly string[])[] = [...may.slice(0, 4), ['read', 'write']]

const pairs = rules.flatMap((host, at) => rules.map((child, index) => ({ host, child, at, index })))

test.each(pairs)(
  'deepagents: under $host a subagent with $child has what both allow',
  async ({ host, child, at, index }) => {
    const { ran, tools } = canaries(...NAMES)
    await openRuntime().run(asking(trying('worker', { grant: child, tools }), host), 'go' as never).result

    expect(ran).toEqual(NAMES.filter((name) => mayPass[at]?.includes(name) && may[index]?.includes(name)))
  },
)
