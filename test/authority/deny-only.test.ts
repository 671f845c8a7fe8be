import { agent, createRuntime, fileTools, type Grant, memoryFiles } from 'legate'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'

const FILES = ['tool:*', 'agent:*', 'model:*', 'file.read:/workspace/**']
const onlyDenies: Grant = { deny: ['tool:write_file'] }

/** What a reader with a rule for files gets of one, and whether the denied tool is refused, under the grants given. */
async function readUnder(grants: { runtime?: Grant; run?: Grant; offer?: Grant; profile?: Grant; own?: Grant }) {
  const files = memoryFiles({ workspace: { 'a.txt': 'hello' } })
  const calls = [
    { name: 'read_text_file', input: { path: '/workspace/a.txt' } },
    { name: 'write_file', input: { path: '/workspace/a.txt', content: 'x' } },
  ]
  const reader = agent({
    name: 'reader',
    instructions: '',
    tools: fileTools(),
    grant: grants.own ?? { use: [...FILES, 'file.write:/workspace/**'] },
    model: scriptedModel([{ calls }, 'Read.']),
  })
  const host = agent({
    name: 'host',
    instructions: '',
    subagents: {
      ask: {
        agent: reader,
        ...(grants.offer === undefined ? {} : { grant: grants.offer }),
        ...(grants.profile === undefined ? {} : { profile: 'careful' }),
      },
    },
    grant: { use: [...FILES, 'file.write:/workspace/**'] },
    model: scriptedModel([{ calls: [{ name: 'ask', input: { message: 'Read.' } }] }, 'Done.']),
  })
  const runtime = createRuntime({
    files,
    ...(grants.runtime === undefined ? {} : { grant: grants.runtime }),
    ...(grants.profile === undefined ? {} : { profiles: { careful: grants.profile } }),
  })
  const results: Record<string, string> = {}
  for await (const event of runtime.run(host, 'Go.', grants.run === undefined ? {} : { grant: grants.run })) {
    if (event.type === 'tool-result' && event.tool !== 'ask') results[event.tool] = String(event.content)
  }
  await runtime.close()
  return results
}

test.each(['runtime', 'run', 'offer', 'profile'] as const)(
  'I2: a grant of the %s that only denies takes nothing else away',
  async (layer) => {
    const { read_text_file: read, write_file: written } = await readUnder({ [layer]: onlyDenies })

    expect(read).toContain('hello')
    expect(written).toMatch(/not allowed here/)
  },
)

const EVERYTHING: Grant = { use: ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*'] }

test.each(['runtime', 'run', 'offer', 'profile'] as const)(
  'I1: a grant of the %s that allows everything gives an agent nothing that its own grant does not',
  async (layer) => {
    const own: Grant = { use: FILES }
    const { read_text_file: read, write_file: written } = await readUnder({ [layer]: EVERYTHING, own })

    expect(read).toContain('hello')
    expect(written).toMatch(/no rule of reader allows file\.write:\/workspace\/a\.txt/)
  },
)
