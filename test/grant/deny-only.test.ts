import { agent, type Grant } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'
import { fileTools, memoryFiles } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { resultsIn } from '../support/reading.ts'
import { lasting } from '../support/stores.ts'

const FILES = ['tool:*', 'agent:*', 'model:*', 'file.read:/workspace/**']
const onlyDenies: Grant = { deny: ['tool:write_file'] }

interface Grants {
  readonly runtime?: Grant
  readonly run?: Grant
  readonly offer?: Grant
  readonly profile?: Grant
  readonly own?: Grant
}

function hostOf({ offer, profile, own }: Grants, script: Script) {
  const model = scriptedModel(script)
  const grant = { use: [...FILES, 'file.write:/workspace/**'] }
  const reader = agent({ name: 'reader', instructions: '', tools: fileTools(), grant: own ?? grant, model })
  const ask = { agent: reader, ...(offer && { grant: offer }), ...(profile && { profile: 'careful' }) }
  const asks: Script = ({ messages }) =>
    messages.some(({ role }) => role === 'tool') ? 'Done.' : { calls: [{ name: 'ask', input: { message: 'Read.' } }] }
  const host = agent({ name: 'host', instructions: '', subagents: { ask }, grant, model: scriptedModel(asks) })
  return { host, model }
}

const EVERYTHING: Grant = { use: ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*'] }

describe.each(lasting)('a grant beside the agent’s own, on %s', (_, create) => {
  const world = useWorld(create)

  /** What a reader with a rule for files gets of one, and of the denied tool, in the process that goes on with it. */
  async function readUnder(grants: Grants): Promise<string[]> {
    const options = {
      files: memoryFiles({ workspace: { 'a.txt': 'hello' } }),
      ...(grants.runtime && { grant: grants.runtime }),
      ...(grants.profile && { profiles: { careful: grants.profile } }),
    }
    const calls = [
      { name: 'read_text_file', input: { path: '/workspace/a.txt' } },
      { name: 'write_file', input: { path: '/workspace/a.txt', content: 'x' } },
    ]
    const entered = makeGate()
    const left = hostOf(grants, () => {
      entered.open()
      return makeGate().opened.then(() => 'never')
    })
    const first = world.start(options)
    const run = first.runtime.run(left.host, 'Go.', grants.run === undefined ? {} : { grant: grants.run })
    await entered.opened
    await first.runtime.close()

    const { host, model } = hostOf(grants, (request) => (resultsIn(request).length === 0 ? { calls } : 'Read.'))
    const { runtime } = world.start({ ...options, agents: [host] })
    await runtime.resume()
    await (await runtime.attach(run.id)).result
    return resultsIn(model.requests.at(-1)).map(({ content }) => String(content))
  }

  test.each(['runtime', 'run', 'offer', 'profile'] as const)(
    'I2: a grant of the %s that only denies takes nothing else away, also after a restart',
    async (layer) => {
      const [read, written] = await readUnder({ [layer]: onlyDenies })

      expect(read).toContain('hello')
      expect(written).toMatch(/not allowed here/)
    },
  )

  test.each(['runtime', 'run', 'offer', 'profile'] as const)(
    'I1: a grant of the %s that allows everything gives an agent nothing that its own grant does not',
    async (layer) => {
      const [read, written] = await readUnder({ [layer]: EVERYTHING, own: { use: FILES } })

      expect(read).toContain('hello')
      expect(written).toMatch(/no rule of reader allows file\.write:\/workspace\/a\.txt/)
    },
  )
})
