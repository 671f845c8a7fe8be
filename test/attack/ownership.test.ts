import { type AnyAgent, agent, NotFoundError, type Runtime, tool } from 'legate'
import { memoryStore } from 'legate/store/memory'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { openRuntime } from '../support/reading.ts'
import { remoteStore } from '../support/remote.ts'
import { localStore } from '../support/rows.ts'

const UNKNOWN = '01900000-0000-7000-8000-00000000dead'

const dump = tool({
  description: 'Dump',
  input: { type: 'object' },
  effect: 'pure',
  execute: () => 'secret '.repeat(20_000),
})

/** One agent at every level, so that no name gives a foreign conversation away: it grows, attacks, or says hello. */
function recursive(attacks: () => readonly { name: string; input: object }[]): { agent: AnyAgent; results: string[] } {
  const results: string[] = []
  const script: Script = ({ messages }) => {
    const at = messages.findLastIndex(({ role }) => role === 'user')
    const asked = String(messages[at]?.content)
    const answers = messages.slice(at).flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    const [verb, number, session_id] = asked.split(' ')
    if (answers.length > 0) {
      if (verb === 'attack') results.push(...answers)
      return 'done'
    }
    if (verb === 'attack') return { calls: attacks() as never }
    if (verb === 'pass') return { calls: [{ name: 'ask', input: { message: number, session_id } as never }] }
    if (verb !== 'grow' || number === undefined) return `heard ${asked}`
    const below = Number(number) > 0 ? [1, 2] : []
    const grow = below.map(() => ({ name: 'ask', input: { message: `grow ${Number(number) - 1}` } }))
    return { calls: [{ name: 'dump', input: {} }, ...grow] }
  }
  const self: { agent?: AnyAgent } = {}
  self.agent = agent({
    name: 'expert',
    instructions: '',
    model: scriptedModel(script),
    tools: { dump },
    subagents: { ask: () => self.agent as AnyAgent },
    budget: { depth: 4 },
  }) as AnyAgent
  return { agent: self.agent, results }
}

interface Tree {
  readonly conversation: string
  /** A result of it that was cut. */
  readonly result: string
  readonly children: readonly Tree[]
}

function treeOf(runtime: Runtime, runId: string): Tree {
  const store = localStore(runtime)
  return {
    conversation: store.turn(runId)?.conversationId ?? '',
    result: store.nodesOf(runId).find(({ output }) => output.bodyRef !== undefined)?.id ?? '',
    children: store.linksOf(runId).map(({ id }) => treeOf(runtime, id)),
  }
}

function at(tree: Tree, ...path: number[]): Tree {
  return path.reduce((node, child) => node.children[child] ?? node, tree)
}

describe('I9: whose conversation a model can name', async () => {
  const relations = {
    itself: (own: Tree) => at(own, 0),
    'its child': (own: Tree) => at(own, 0, 1),
    'its grandchild': (own: Tree) => at(own, 0, 1, 0),
    'its host': (own: Tree) => own,
    'a sibling': (own: Tree) => at(own, 1),
    'a cousin': (own: Tree) => at(own, 1, 0),
    'another run of another user': (_own: Tree, other: Tree) => other,
    'a subagent of another user': (_own: Tree, other: Tree) => at(other, 0),
    'a grandchild of another user': (_own: Tree, other: Tree) => at(other, 0, 0),
    'nobody at all': () => ({ conversation: UNKNOWN, result: UNKNOWN, children: [] }),
    'a name that is not an id': () => ({ conversation: '../../etc/passwd', result: '../../etc/passwd', children: [] }),
    'a word of every object': () => ({ conversation: '__proto__', result: 'constructor', children: [] }),
  }

  /** The first child of a root tries each id. */
  async function attack(call: (target: Tree) => { name: string; input: object }) {
    const runtime = openRuntime({ store: memoryStore({ keep: 1_000 }) })
    let targets: Tree[] = []
    const { agent: expert, results } = recursive(() => targets.map(call))
    const own = runtime.run(expert, 'grow 3' as never, { owner: 'ann' })
    const other = runtime.run(expert, 'grow 3' as never, { owner: 'bob' })
    await Promise.all([own.result, other.result])
    const [ownTree, otherTree] = [treeOf(runtime, own.id), treeOf(runtime, other.id)]
    targets = Object.values(relations).map((find) => find(ownTree, otherTree))
    expect(new Set(targets.map(({ conversation }) => conversation)).size).toBe(targets.length)
    const first = at(ownTree, 0).conversation
    await runtime.run(expert, `pass attack ${first}` as never, { conversationId: own.conversationId }).result
    const turns = (tree: Tree) => localStore(runtime).conversation(tree.conversation)?.turnCount
    return { targets, results, turns: targets.map(turns) }
  }

  test('a model can speak to its own child and to nobody else: other conversations answer like unknown ones', async () => {
    const { targets, results, turns } = await attack(({ conversation }) => ({
      name: 'ask',
      input: { message: 'psst', session_id: conversation },
    }))

    const names = Object.keys(relations)
    expect(results).toHaveLength(names.length)
    for (const [index, name] of names.entries()) {
      const id = targets[index]?.conversation ?? ''
      const answer = results[index]
      if (name === 'its child') expect(answer).toBe(`session_id: ${id}\n\nheard psst`)
      else
        expect(answer).toBe(
          `Error: Session setup failed: there is no session ${id} in this conversation. Leave session_id out to start one.`,
        )
    }
    const grown = names.filter((_, index) => (turns[index] ?? 0) > 1)
    // The root and the attacker were spoken to by us.
    expect(grown).toEqual(['itself', 'its child', 'its host'])
  })

  test('a model can read results that were cut in its own conversation, and nothing else', async () => {
    const { targets, results } = await attack(({ result }) => ({
      name: 'read_result',
      input: { id: result, offset: 0 },
    }))

    for (const [index, name] of Object.keys(relations).entries()) {
      const id = targets[index]?.result ?? ''
      if (name === 'itself') expect(results[index]).toMatch(/^secret secret/)
      else expect(results[index]).toBe(`Error: there is no cut result ${id} in this conversation`)
    }
  })
})

describe('I9: whose conversation an owner can name', () => {
  async function world() {
    const runtime = openRuntime()
    const { agent: expert } = recursive(() => [])
    const mine = runtime.run(expert, 'grow 1' as never, { owner: 'ann' })
    const theirs = runtime.run(expert, 'grow 1' as never, { owner: 'bob' })
    await Promise.all([mine.result, theirs.result])
    const of = (runId: string) => localStore(runtime).linksOf(runId)[0]?.childConversationId ?? ''
    const say = (conversationId: string, owner?: string) =>
      runtime.run(expert, 'hi' as never, { conversationId, ...(owner === undefined ? {} : { owner }) }).result
    return { runtime, expert, mine, theirs, childOf: of, say }
  }

  test('a conversation of the owner goes on', async () => {
    const { mine, say } = await world()

    expect(await say(mine.conversationId, 'ann')).toMatchObject({ status: 'completed', text: 'heard hi' })
  })

  test('another’s, a subagent of another’s and none at all are the same answer', async () => {
    const { theirs, childOf, say } = await world()
    const failures = await Promise.all(
      [theirs.conversationId, childOf(theirs.id), UNKNOWN, '', '__proto__'].map(async (id) => {
        const error: unknown = await say(id, 'ann').catch((thrown: unknown) => thrown)
        expect(NotFoundError.isInstance(error)).toBe(true)
        return (error as Error).message.replace(` ${id} `, ' ID ')
      }),
    )

    expect(new Set(failures)).toEqual(new Set(['There is no conversation ID in this store.']))
  })

  test('of two owners who make one conversation at once, one has it, and to the other it is not there', async () => {
    const model = scriptedModel(({ messages }) => `heard ${messages.map(({ content }) => String(content)).join()}`)
    const listener = agent({ name: 'listener', instructions: '', model })
    const runtime = openRuntime({ store: remoteStore(memoryStore()) })
    await runtime.run(listener, 'begin').result

    for (let at = 0; at < 10; at++) {
      const conversationId = `01900000-0000-7000-8000-00000000000${at}`
      const asked = ['ann', 'bob'].map((owner) =>
        runtime.run(listener, `secret of ${owner}`, { conversationId, createConversation: true, owner }).result.then(
          ({ text }) => text,
          (error: unknown) => error,
        ),
      )
      const said = await Promise.all(asked)

      expect(said.filter((one) => one instanceof NotFoundError)).toHaveLength(1)
      const [heard] = said.filter((one) => typeof one === 'string')
      expect(heard).not.toMatch(/ann.*bob|bob.*ann/)
    }
  })

  test('nobody speaks into the conversation of a subagent but its host, its owner included', async () => {
    const { mine, childOf, say } = await world()

    await expect(say(childOf(mine.id), 'ann')).rejects.toThrow(/only its host can go on with it/)
    await expect(say(childOf(mine.id))).rejects.toThrow(/only its host can go on with it/)
  })

  test('what others are asked is not seen from a run, and a run that is not there asks nothing', async () => {
    const { runtime, mine, theirs } = await world()

    expect(await runtime.approvals({ runId: theirs.id })).toEqual(await runtime.approvals({ runId: UNKNOWN }))
    expect(await runtime.approvals({ runId: mine.id })).toEqual([])
  })

  test.each(['attach', 'cancel', 'usage', 'conversation', 'answer', 'explain'] as const)(
    '%s of an id that is not there says so, whatever the id is',
    async (method) => {
      const { runtime } = await world()
      const call = {
        attach: async (id: string) => runtime.attach(id),
        cancel: (id: string) => runtime.cancel(id),
        usage: async (id: string) => runtime.usage(id),
        conversation: (id: string) => runtime.conversation(id),
        answer: (id: string) => runtime.answer(id, { allow: true }),
        explain: async (id: string) => runtime.explain(id, 'tool:dump'),
      }[method]
      for (const id of [UNKNOWN, '', '__proto__', 'constructor', '../x', '\u0000', 'x'.repeat(100_000)]) {
        await expect(call(id)).rejects.toThrow(NotFoundError)
      }
    },
  )
})
