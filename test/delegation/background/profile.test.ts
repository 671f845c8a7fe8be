import { agent, createRuntime, type Grant, type Json, tool } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { contextTurnsOf, profileOf } from '../../../src/core/agent/build/conversation-settings.ts'
import { BUILT_IN_PROFILES } from '../../../src/core/grant/profile.ts'
import { conversationRow } from '../../../src/testing/conformance/store-rows.ts'
import { localStore } from '../../support/rows.ts'
import { call, hostOf, lastSaid, playing, resultsIn, spawnCall, tasksIn } from './support.ts'

const NAMES = ['memory_search', 'skills_list', 'echo']

describe('profiles of a child', () => {
  test('a tool that is not in its profile never runs, and the model reads so', async () => {
    const { child, ran, runtime } = await childWith('minimal', (request) =>
      resultsIn(request).length === 0 ? call('echo') : 'Done.',
    )
    const [task] = tasksIn(localStore(runtime), child.runId)

    expect(ran).toEqual([])
    expect(task).toMatchObject({ state: 'finished', output: { isError: true } })
    expect(String(task?.output.content)).toContain('tool_not_in_profile')
    expect(child.outcome).toMatchObject({ status: 'completed' })
    await runtime.close()
  })

  test.each([
    ['full', [...NAMES, 'subagent_spawn']],
    ['minimal', []],
    ['memory_only', ['memory_search']],
    ['skills_only', ['skills_list']],
  ])('under %s it sees %j and may use no more', async (profile, allowed) => {
    const offered: string[][] = []
    const { ran, runtime } = await childWith(profile, (request) => {
      offered.push(request.tools.map(({ name }) => name))
      return resultsIn(request).length === 0 ? { calls: NAMES.map((name) => ({ name, input: {} })) } : 'Done.'
    })

    const known = [...NAMES, 'subagent_spawn']
    expect(offered[0]?.filter((name) => known.includes(name)).sort()).toEqual([...allowed].sort())
    expect(ran.sort()).toEqual(NAMES.filter((name) => allowed.includes(name)).sort())
    await runtime.close()
  })

  test('full does not widen what the application denies', async () => {
    const { ran, runtime } = await childWith(
      'full',
      (request) => (resultsIn(request).length === 0 ? call('echo') : 'Done.'),
      { use: ['model:*', 'agent:*', 'tool:subagent_*'] },
    )

    expect(ran).toEqual([])
    await runtime.close()
  })

  test('what must be asked for is asked for inside the profile, and denied without asking outside of it', async () => {
    const { runtime, child, ran } = await childWith(
      'memory_only',
      (request) => (resultsIn(request).length === 0 ? { calls: NAMES.map((name) => ({ name, input: {} })) } : 'Done.'),
      { ask: ['tool:memory_search', 'tool:skills_list', 'tool:echo'] },
      async (open) => {
        const asked = await open.approvals()
        expect(asked.map(({ tool: name }) => name)).toEqual(['memory_search'])
        for (const { nodeId } of asked) await open.answer(nodeId, { allow: true })
      },
    )

    expect(ran).toEqual(['memory_search'])
    expect(child.outcome).toMatchObject({ status: 'completed' })
    await runtime.close()
  })

  test.each<[Json | undefined, number]>([
    ['abc', 50],
    [0, 50],
    [5000, 50],
    [7, 7],
    [null, 50],
    [undefined, 20],
  ])('%j rounds that are stored are %i', (stored, turns) => {
    const said = stored === undefined ? {} : { context_turns: stored }
    const row = conversationRow('c', { metadata: { agent: { key: 'x', ...said } } })
    const own = agent({ name: 'a', instructions: 'x', contextTurns: 20 })

    expect(contextTurnsOf(row, own)).toBe(turns)
  })

  test('invalid metadata is ignored', () => {
    const own = agent({ name: 'a', instructions: 'x', contextTurns: 20 })

    for (const said of [5, 'x', null, [], true]) {
      const row = conversationRow('c', { metadata: { agent: said } })
      expect([contextTurnsOf(row, own), profileOf(row, BUILT_IN_PROFILES)]).toEqual([20, undefined])
    }
  })

  test('a child with 7 rounds is shown 7 and what it was told to begin with, no more', async () => {
    const shown: number[] = []
    const told: string[] = []
    const { host } = hostOf(
      (request) => {
        const results = resultsIn(request)
        if (results.length === 0) return { calls: [spawnCall('x', 'round 1', { context_turns: 7 })] }
        if (results.length > 10) return 'done'
        const id = String((JSON.parse(String(results[0])) as { child_conversation_id: string }).child_conversation_id)
        return results.length === 10
          ? call('subagent_wait')
          : call('subagent_send', { child_conversation_id: id, message: `round ${results.length + 1}` })
      },
      {
        agent: agent({
          name: 'w',
          instructions: 'x',
          model: scriptedModel(({ messages }) => {
            shown.push(messages.filter(({ role }) => role === 'user').length)
            told.push(messages.map(({ role, content }) => (role === 'system' ? content : role)).join('|'))
            return 'ok'
          }),
        }),
      },
    )
    const runtime = createRuntime()
    await runtime.run(host, 'go').result

    expect(Math.max(...shown)).toBe(7)
    expect(shown).toHaveLength(10)
    for (const text of told)
      expect(text).toMatch(/^[^|]*\|You are a subagent in an independent conversation[^|]*\|user/)
    await runtime.close()
  })

  test('a change between two nodes narrows at the next one, and never widens what was frozen', async () => {
    const ran: string[] = []
    const tools = { ...toolsOf(ran), ...backgroundSubagents() }
    const profiles = [undefined, 'minimal', 'full']
    const wanted = ['skills_list', 'skills_list', 'echo']
    const ofChild = async (at: number) => {
      const policyProfile = profiles[at]
      if (policyProfile !== undefined) await (await runtime.conversation(child())).configure({ policyProfile })
      return wanted[at] === undefined ? 'Done.' : call(wanted[at])
    }
    const script: Script = (request) => {
      const results = resultsIn(request)
      if (request.path.length > 1) return ofChild(results.length)
      return results.length === 0 ? { calls: [spawnCall('x', 'go', { policy_profile: 'skills_only' })] } : 'done'
    }
    const host = agent({ name: 'host', instructions: 'x', model: scriptedModel(script), tools })
    const runtime = createRuntime()
    const run = runtime.run(host, 'go')
    const child = () => localStore(runtime).linksOf(run.id)[0]?.childConversationId ?? ''
    await run.result
    await runtime.idle()

    const [link] = localStore(runtime).linksOf(run.id)
    const ends = tasksIn(localStore(runtime), link?.id ?? '').map(({ output }) => output.isError === true)
    expect(ends).toEqual([false, true, true])
    expect(ran).toEqual(['skills_list'])
    await runtime.close()
  })

  test('a stored profile that nobody defined allows nothing', () => {
    for (const stored of ['fulll', '', 7, null, { name: 'full' }, 'constructor'] as Json[]) {
      const row = conversationRow('c', { metadata: { agent: { policy_profile: stored } } })
      expect(profileOf(row, BUILT_IN_PROFILES)).toBe('minimal')
    }
    expect(
      profileOf(conversationRow('c', { metadata: { agent: { policy_profile: ' Full ' } } }), BUILT_IN_PROFILES),
    ).toBe('full')
  })

  test('settings of a conversation that cannot be are refused', async () => {
    const { host } = hostOf(playing())
    const runtime = createRuntime()
    const run = runtime.run(host, 'go')
    await run.result
    const talk = await runtime.conversation(run.conversationId)

    await expect(talk.configure({ policyProfile: 'fulll' })).rejects.toThrow('There is no profile "fulll"')
    await expect(talk.configure({ contextTurns: 0 })).rejects.toThrow('contextTurns')
    await runtime.close()
  })
})

function toolsOf(ran: string[]) {
  return Object.fromEntries(
    NAMES.map((name) => {
      const execute = () => {
        ran.push(name)
        return 'ok'
      }
      return [name, tool({ description: name, input: { type: 'object' }, effect: 'pure', execute })]
    }),
  )
}

type Open = ReturnType<typeof createRuntime>

/** A host that spawns itself under a profile; the child plays the script. */
async function childWith(profile: string, script: Script, grant?: Grant, meanwhile?: (runtime: Open) => Promise<void>) {
  const ran: string[] = []
  const tools = { ...toolsOf(ran), ...backgroundSubagents({ nested: true }) }
  const model = scriptedModel((request, at) => {
    if (request.path.length > 1) return script(request, at)
    if (lastSaid(request).startsWith('[background]')) return 'told'
    return resultsIn(request).length === 0 ? { calls: [spawnCall('x', 'go', { policy_profile: profile })] } : 'done'
  })
  const host = agent({ name: 'host', instructions: 'x', model, tools })
  const runtime = createRuntime(grant === undefined ? {} : { grant })
  const run = runtime.run(host, 'go')
  await run.result
  const [link] = localStore(runtime).linksOf(run.id)
  if (meanwhile !== undefined) {
    while ((await runtime.approvals()).length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    await meanwhile(runtime)
  }
  await runtime.idle()
  const outcome = localStore(runtime).link(link?.id ?? '')?.outcome
  return { runtime, ran, child: { runId: link?.id ?? '', outcome } }
}
