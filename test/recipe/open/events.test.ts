import { createRuntime, type RunEvent } from 'legate'
import { readTaskEvent, subagentLine, subagentNotice, TaskBoard, type TaskEvent } from 'legate/recipe'
import type { Script } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { simpleTool } from '../../support/agents.ts'
import { calling, delegating, hostOf, resultsIn, subagent, userOf } from './support.ts'

const look = simpleTool(() => 'seen', { effect: 'pure' })

async function eventsOf(calls: Parameters<typeof delegating>[0], child: Script): Promise<RunEvent[]> {
  await using runtime = createRuntime()
  const run = runtime.run(hostOf({ model: delegating(calls, child), tools: { developer__look: look } }), 'go')
  const events: RunEvent[] = []
  for await (const event of run) events.push(event)
  return events
}

const lookThenSay: Script = (request) =>
  resultsIn(request).length === 0
    ? calling('developer__look', { who: String(userOf(request)) })
    : { chunks: ['one\ntw', 'o\nthree'], usage: { inputTokens: 3, outputTokens: 2 } }

describe('what is told of subagents while they work', () => {
  test('everything from being made to the end, with the ids of the child', async () => {
    const events = await eventsOf([subagent({ instructions: 'a' })], lookThenSay)
    const start = events.find(({ type }) => type === 'delegation-start')
    const { childRunId, childConversationId } = start as Extract<RunEvent, { type: 'delegation-start' }>
    const own = events.filter(({ runId }) => runId === childRunId)

    const kinds = own.map(({ type }) => type).filter((type, at, all) => type !== all[at - 1])
    expect(kinds).toEqual(
      expect.arrayContaining(['run-start', 'tool-call', 'tool-result', 'text-delta', 'message', 'usage', 'run-end']),
    )
    expect(kinds.indexOf('tool-call')).toBeLessThan(kinds.indexOf('tool-result'))
    expect(kinds.at(-1)).toBe('run-end')
    expect(own.filter(({ type }) => type === 'usage')).toHaveLength(2)
    expect(own.every(({ conversationId }) => conversationId === childConversationId)).toBe(true)
    expect(events.filter(({ type }) => type === 'delegation-end')).toMatchObject([{ childRunId, status: 'completed' }])
  })

  test.each<[string, Script, string]>([
    ['failed', () => ({ error: new Error('broken') }), 'failed'],
    ['at its limit', () => calling('developer__look'), 'max_turns'],
  ])('a subagent that ended %s is told so', async (_, child, status) => {
    const events = await eventsOf([subagent({ instructions: 'a', settings: { max_turns: 1 } })], child)

    expect(events.filter(({ type }) => type === 'delegation-end')).toMatchObject([{ status }])
  })

  test('each call of a child is a notification with its id; calls of the host are not', async () => {
    const events = await eventsOf([subagent({ instructions: 'a' }), subagent({ instructions: 'b' })], lookThenSay)
    const notices = events.flatMap((event) => subagentNotice(event) ?? [])
    const ids = events.flatMap((event) => (event.type === 'delegation-start' ? [event.childConversationId] : []))

    expect(new Set(ids).size).toBe(2)
    expect(notices).toHaveLength(2)
    for (const [at, id] of ids.entries()) {
      expect(notices).toContainEqual({
        level: 'info',
        logger: `subagent:${id}`,
        data: {
          type: 'subagent_tool_request',
          subagent_id: id,
          tool_call: { name: 'developer__look', arguments: { who: 'ab'[at] } },
        },
      })
    }
  })

  test.each([
    ['20260204_16', 'developer__text_editor', '[subagent:16] text_editor | developer'],
    ['20260204_16', 'todo', '[subagent:16] todo'],
    ['20260204_16', 'srv__a__b', '[subagent:16] a__b | srv'],
    ['01a1df2c-12e2-76db-b845-ab3b000d22a2', 'developer__shell', '[subagent:000d22a2] shell | developer'],
  ])('the line of %s calling %s is %s', (subagent_id, name, line) => {
    const data = { type: 'subagent_tool_request', subagent_id, tool_call: { name, arguments: {} } } as const

    expect(subagentLine({ level: 'info', logger: '', data })).toBe(line)
  })
})

describe('a dashboard of tasks', () => {
  const boardOf = (events: readonly RunEvent[]): TaskEvent[] => {
    const board = new TaskBoard()
    return events.flatMap((event) => board.tell(event))
  }

  test('is told how all stand, the lines they say, and the end of the last', async () => {
    const child: Script = (request, at) =>
      userOf(request) === 'bad' ? { error: new Error('broken') } : lookThenSay(request, at)
    const told = boardOf(await eventsOf([subagent({ instructions: 'good' }), subagent({ instructions: 'bad' })], child))
    const last = told.at(-1)

    expect(told[0]).toMatchObject({ subtype: 'tasks_update', stats: { total: 1, running: 1 } })
    expect(told.flatMap((one) => (one.subtype === 'line_output' ? [one.output] : []))).toEqual(['one', 'two'])
    expect(told.at(-2)).toMatchObject({ stats: { total: 2, pending: 0, running: 0, completed: 1, failed: 1 } })
    expect(last).toMatchObject({
      subtype: 'tasks_complete',
      stats: { total: 2, completed: 1, failed: 1, success_rate: 50 },
      failed_tasks: [{ name: 'subagent', error: expect.stringContaining('broken') }],
    })
    for (const one of told) expect(readTaskEvent(JSON.stringify(one))).toEqual(one)
  })

  test('has nothing to tell where nothing is delegated', async () => {
    expect(boardOf(await eventsOf([], () => ''))).toEqual([])
  })

  test.each(['', 'plain words', '[]', 'null', '{"type":"task_execution"}', '{"type":"x","subtype":"line_output"}'])(
    'another line is not a notification: %s',
    (line) => {
      expect(readTaskEvent(line)).toBeUndefined()
    },
  )
})
