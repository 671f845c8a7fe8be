import { existsSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { localStore } from '../support/rows.ts'
import { agentsModule, Place, program, skipUnlessBuilt } from './support/cli.ts'
import { serveModel } from './support/model-server.ts'
import { project } from './support/project.ts'

beforeEach(skipUnlessBuilt)

describe('history is changed from the command line', () => {
  const place = new Place(afterAll)
  let [leadId, failedId] = ['', '']

  beforeAll(async () => {
    if (!existsSync(program)) return
    place.open()
    ;[leadId = '', failedId = ''] = await place.endedRuns('lead', 'failing')
  })

  const short = (id: string) => id.slice(-8)

  test('fork makes a lane that waits, or goes on from a node; resume works on it; the original stays', async () => {
    const store = localStore(place.runtime())
    const original = store.nodesOf(leadId)
    const [nodes, atEnd, json] = await Promise.all([
      place.run(['show', leadId, '--nodes']),
      place.run(['fork', short(leadId), '--title', 'another']),
      place.run(['show', leadId, '--nodes', '--json']),
    ])
    const lines = nodes.stdout.trim().split('\n')
    expect(lines).toHaveLength(5)
    expect(lines[1]).toMatch(/^\w{8} {2}agent_message {4}finished/)
    expect(lines[2]).toMatch(/^\w{8} {2}search {11}finished/)
    expect(
      json.stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { kind: string }).kind),
    ).toEqual(['user_message', 'agent_message', 'task', 'task', 'agent_message'])
    expect(atEnd).toMatchObject({ code: 0, stderr: '' })
    expect(atEnd.stdout).toMatch(
      /^Forked at \w{8}: the lane (\w{8})\. It waits for an input: runtime\.run\(agent, input, \{ conversationId: '[\w-]+\1' \}\)\n$/,
    )
    const task = lines[2]?.slice(0, 8) ?? ''

    const inside = await place.run(['fork', leadId, task, '--rerun', '--json'])

    const forked = JSON.parse(inside.stdout) as { laneId: string; runId: string; nodeId: string }
    expect(forked.nodeId.endsWith(task)).toBe(true)
    const resumed = await place.run(['resume', forked.runId, '--module', agentsModule])
    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('All of them saw it: 2.') as string })
    expect(store.turn(forked.runId)?.laneId).toBe(forked.laneId)
    expect((await place.run(['transcript', forked.laneId])).stdout).toContain('All of them saw it: 2.')
    expect(store.linksOf(forked.runId).map(({ agentName }) => agentName)).toEqual(['scout', 'scout'])
    expect(store.nodesOf(leadId)).toEqual(original)
  })

  test('retry does once more what failed, and says which command works on it', async () => {
    const [retried, nothing] = await Promise.all([
      place.run(['retry', short(failedId)]),
      place.run(['retry', short(leadId)]),
    ])

    expect(retried).toMatchObject({ code: 0, stderr: '' })
    expect(retried.stdout).toMatch(
      /^\w{8} is retried in the run (\w{8})\. Continue with: legate resume \1 --module FILE\n$/,
    )
    expect(nothing).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`Nothing failed in the run ${short(leadId)}.`) as string,
    })
  })

  test('edit says it otherwise, from the line or from stdin; without code its limits stay', async () => {
    const store = localStore(place.runtime())
    const before = store.turn(leadId)
    const edited = await place.run(['edit', leadId, '-', '--json'], { input: 'And which shape?\n' })

    const { runId, nodeId } = JSON.parse(edited.stdout) as { runId: string; nodeId: string }
    const turn = store.turn(runId)
    expect(turn).toMatchObject({ state: 'running', input: 'And which shape?', limits: before?.limits })
    expect(store.node(nodeId)?.input.content).toBe('What colour is it?')
    const [busy, shown] = await Promise.all([place.run(['edit', leadId, 'Again.']), place.run(['transcript', runId])])
    expect(busy.code).toBe(1)
    expect(busy.stderr).toMatch(/^legate: .*(made anew|is not over)/)
    expect(shown.stdout).toContain('And which shape?')
  })

  test('a run of a file is changed without a worker: nothing is begun here, and the commands that are named work', async () => {
    const files = project({ 'a.yaml': 'title: T\ndescription: D\nprompt: Go.\n' })
    const mock = await serveModel(files, (one) => one.on({}, { content: 'Done.' }))
    await files.run(['run', 'a.yaml'])
    const [first = ''] = (await files.run(['ps', '-q'])).stdout.split('\n')
    const before = mock.getRequests().length

    const edited = await files.run(['edit', first, 'Go on.'])
    const [, resume = ''] =
      /^Message edited\. New run: \w{8}\. Continue with: legate (resume \w{8})\n$/.exec(edited.stdout) ?? []
    const why = await files.run(['why', resume.slice(-8)])
    expect(mock.getRequests()).toHaveLength(before)
    expect(why.stdout).toMatch(/No process works on a model call.*\n {2}→ legate resume \w{8}\n/)

    const keyless = await files.run(resume.split(' '), { env: { OPENAI_API_KEY: '' } })
    expect(keyless).toMatchObject({ code: 2, stderr: expect.stringContaining('Set OPENAI_API_KEY') as string })
    expect(await files.run(resume.split(' '))).toMatchObject({ code: 0 })
    expect(mock.getRequests()).toHaveLength(before + 1)

    const forked = await files.run(['fork', resume.slice(-8)])
    const [, chat = ''] = /It waits for an input: legate (chat --continue \w{8})\n$/.exec(forked.stdout) ?? []
    const fresh = await files.run(['show', chat.slice(-8)])
    expect(fresh).toMatchObject({ code: 2, stderr: expect.stringContaining('has no run yet') as string })
    const talked = await files.run(chat.split(' '), { input: 'And then?\n' })
    expect(talked).toMatchObject({ code: 0, stdout: 'Done.\n' })
    const asked = JSON.stringify(mock.getLastRequest()?.body)
    expect(asked).toContain('Go on.')
    expect(asked).toContain('And then?')
    const other = await files.run(['chat', '-c', first, '--model', 'openai/gpt-5-mini'], { input: 'x\n' })
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining('Name its file') as string })
    const said = await files.run(['transcript', first])
    expect(said.stdout).not.toContain('Earlier: ')
  })

  test('wrong ids are refused with what to type', async () => {
    const answers = await Promise.all([
      place.run(['fork', 'ffffffff']),
      place.run(['fork', leadId, 'ffffffff']),
      place.run(['retry', leadId, failedId.slice(-8)]),
      place.run(['edit', leadId]),
      place.run(['fork', leadId, 'ff']),
    ])

    expect(answers.map(({ code }) => code)).toEqual([2, 2, 2, 2, 2])
    expect(answers[0]?.stderr).toContain('No id here ends in "ffffffff". legate ps --all lists the runs.')
    expect(answers[1]?.stderr).toContain(
      `No node in this store has an id that ends in "ffffffff". legate show ${short(leadId)} --nodes lists them.`,
    )
    expect(answers[3]?.stderr).toContain('legate edit --help')
    expect(answers[4]?.stderr).toContain('too short for an id')
  })
})
