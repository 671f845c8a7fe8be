import { readFileSync } from 'node:fs'
import path from 'node:path'
import { agent, createRuntime, type RunOutcome, type Runtime, tool } from 'legate'
import { mcpServer } from 'legate/mcp'
import { recipeAgent } from 'legate/recipe'
import { sqliteStore } from 'legate/store/sqlite'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { realign } from '../../../src/testing/replay/answer-parts.ts'
import { recipe } from '../../recipe/open/support.ts'
import { localStore } from '../../support/rows.ts'
import { serverFile } from '../../tools/mcp/support.ts'
import { both, linesOf, recorded, recordingFile, replayed, seen, storyOf } from './support.ts'

const calls = (name: string, input: object = {}): Script => {
  return ({ messages }) => {
    const last = messages.at(-1)
    return last?.role === 'tool'
      ? `said ${String(last.content)}`
      : { calls: [{ id: 'c', name, input: input as never }] }
  }
}
const who = (script: Script, extra: object = {}) =>
  agent({ name: 'who', instructions: '', model: scriptedModel(script), ...extra })

describe('ids and times', () => {
  test('of ours are those of the replay, whoever told them; those of others stay', async () => {
    const foreign = '01900000-0000-7000-8000-00000000abcd'
    const where = tool({
      description: '',
      input: { type: 'object' },
      execute: (_input, { node }) => ({ mine: node.id, run: node.runId, talk: node.conversationId, foreign }),
    })
    const { file, first, second, runtime } = await both((at) => at.run(who(calls('where'), { tools: { where } }), 'go'))

    const told = ({ outcome }: { outcome: RunOutcome }) => JSON.parse(outcome.text.slice(5)) as Record<string, string>
    expect(told(second)).toMatchObject({ run: second.outcome.runId, talk: second.outcome.conversationId, foreign })
    expect(told(second)['mine']).not.toBe(told(first)['mine'])
    expect(localStore(runtime).node(told(second)['mine'] ?? '')?.kind).toBe('task')
    expect(linesOf(file)[3]).toMatchObject({
      result: { value: { mine: '<id:1>', run: '<id:2>', talk: '<id:3>', foreign } },
      own: ['<id:1>', '<id:2>', '<id:3>'],
    })
    runtime.assertComplete()
  })

  test('an id that comes in pieces is one piece', () => {
    expect(realign(['a 01', '23', '45 b', ' c'], 'a <id:1> b c')).toEqual(['a <id:1>', '', ' b', ' c'])
    expect(realign(['0123', '45'], '<id:1>')).toEqual(['<id:1>', ''])
    expect(realign(['x', 'y'], 'xy')).toEqual(['x', 'y'])
    expect(realign(['key=', 'ab', 'cd', ' end'], 'key=*** end')).toEqual(['key=', '***', '', ' end'])
    expect(realign(['a', 'b'], 'something else')).toEqual(['something else', ''])
  })
})

describe('what is not a tool of an agent', () => {
  test('the tools of an MCP server are offered and answer without it', async () => {
    const server = () => mcpServer({ command: process.execPath, args: [serverFile('everything'), 'stdio'] })
    const grant = { use: ['tool:*', 'exec:*'] }
    const drive = (source: ReturnType<typeof server>) => (runtime: Runtime) =>
      runtime.run(who(calls('every__echo', { message: 'hello' }), { sources: { every: source }, grant }), 'go')
    const file = recordingFile()
    const first = recorded(file)
    const before = await seen(first, drive(server()))
    await first.close()
    const runtime = replayed(file)

    const after = await seen(
      runtime,
      drive(mcpServer({ command: process.execPath, args: [serverFile('everything'), 'stdio'], cwd: '/nowhere' })),
    )

    expect(before.outcome.text).toContain('hello')
    expect(after.outcome.text).toBe(before.outcome.text)
    expect(storyOf(after)).toEqual(storyOf(before))
    runtime.assertComplete()
  })

  test('nodes of kinds of your own', async () => {
    const ran: string[] = []
    const options = {
      kinds: {
        review: {
          leaf: true,
          execute: (_node: unknown, { progress }: { progress: (message: string) => void }) => {
            ran.push('review')
            progress('at it')
            return { verdict: 'fine' }
          },
        },
      },
    }
    const author = agent({ name: 'author', instructions: '', model: scriptedModel(() => 'words') })
    const drive = async (runtime: Runtime) => {
      const run = runtime.run(author, 'go')
      const { conversationId } = await run.result
      const talk = await runtime.conversation(conversationId)
      const turnId = await talk.mutate((graph) => {
        graph.createNode({ kind: 'review', input: { value: 'words' }, effect: 'pure' })
        return graph.runId
      })
      return runtime.attach(turnId)
    }
    const { first, second, runtime } = await both(drive, { options })

    expect(ran).toEqual(['review'])
    expect(second.graph).toEqual(first.graph)
    runtime.assertComplete()
  })

  test('a recording of a store on disk is played in memory', async () => {
    const file = recordingFile()
    const look = tool({ description: '', input: { type: 'object' }, execute: () => 'seen' })
    const one = who(calls('look'), { tools: { look } })
    const first = recorded(file, { store: sqliteStore(`${file}.db`) })
    const before = await seen(first, (at) => at.run(one, 'go'))
    await first.close()
    const runtime = replayed(file)

    const after = await seen(runtime, (at) => at.run(one, 'go'))

    expect(after.graph).toEqual(before.graph)
    expect(storyOf(after)).toEqual(storyOf(before))
  })

  test('a runtime that is not recorded asks nobody', () => {
    expect(Reflect.get(Reflect.get(createRuntime(), 'live') as object, 'tape')).toBe(null)
  })
})

test('the checks of a recipe are not run again', async () => {
  const file = recipe(
    'prompt: x\nretry: { max_retries: 2, checks: [{ type: shell, command: "echo x >> tries; test $(wc -l < tries) = 2" }] }\n',
  )
  const folder = path.dirname(file)
  const found = await both(async (runtime) => runtime.run(await recipeAgent(file, { grant: EXEC, cwd: folder })), {
    options: { model: scriptedModel(() => 'done') },
  })

  expect(found.second.outcome).toMatchObject({ status: 'completed', modelCalls: found.first.outcome.modelCalls })
  expect(readFileSync(path.join(folder, 'tries'), 'utf8')).toBe('x\nx\n')
  expect(storyOf(found.second)).toEqual(storyOf(found.first))
  found.runtime.assertComplete()
})

const EXEC = { use: ['tool:*', 'agent:*', 'model:*', 'exec:*'] }
