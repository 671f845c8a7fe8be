import { agent, createRuntime, tool } from 'legate'
import { type ScheduledTask, type ScheduleEvent, scheduleTasks } from 'legate/background'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { lastResult, userOf } from './support.ts'

const workerOf = (script: Script) => agent({ name: 'worker', instructions: 'Work.', model: scriptedModel(script) })
const asked = (request: Parameters<Script>[0]) => String(userOf(request))

async function run(tasks: readonly ScheduledTask[], script: Script, options = {}) {
  await using runtime = createRuntime()
  const schedule = scheduleTasks(runtime, tasks, { agent: workerOf(script), retryDelayMs: 1, ...options })
  const events: ScheduleEvent[] = []
  for await (const event of schedule) events.push(event)
  return { ...(await schedule.result), events }
}

const task = (id: string, more: Partial<ScheduledTask> = {}): ScheduledTask => ({ id, prompt: id, ...more })
const passing = () => ({ error: Object.assign(new Error('busy'), { isRetryable: false }) })

describe('tasks with dependencies, priorities, tries and limits', () => {
  test('twelve tasks, five at a time, the urgent first; all of them run', async () => {
    let now = 0
    let most = 0
    const order: string[] = []
    const tasks = Array.from({ length: 12 }, (_, at) => task(`t${at}`, { priority: at === 11 ? 9 : at === 7 ? 5 : 0 }))
    const { success, counts, results } = await run(tasks, async (request) => {
      order.push(asked(request))
      most = Math.max(most, ++now)
      await new Promise((resolve) => setTimeout(resolve, 5))
      now--
      return 'ok'
    })

    expect({ success, most }).toEqual({ success: true, most: 5 })
    expect(counts).toEqual({ total: 12, completed: 12, failed: 0, cancelled: 0, skipped: 0 })
    expect(order.slice(0, 2).sort()).toEqual(['t11', 't7'])
    expect(results.map(({ id }) => id)).toEqual(tasks.map(({ id }) => id))
  })

  test('what depends on another comes after it, and may use what it gave; others run beside', async () => {
    const order: string[] = []
    const tasks = [
      task('c', { dependencies: ['b'], prompt: (results) => `c after ${results.get('b')?.text}` }),
      task('b', { dependencies: ['a'] }),
      task('a'),
      task('d'),
    ]
    const { results } = await run(tasks, (request) => {
      order.push(asked(request))
      return `did ${asked(request)}`
    })

    expect(order.slice(0, 2).sort()).toEqual(['a', 'd'])
    expect(order.indexOf('b')).toBeLessThan(order.indexOf('c after did b'))
    expect(results.find(({ id }) => id === 'c')?.text).toBe('did c after did b')
  })

  test.each<[readonly ScheduledTask[], string]>([
    [
      [task('a', { dependencies: ['b'] }), task('b', { dependencies: ['c'] }), task('c', { dependencies: ['a'] })],
      'in a circle: a -> b -> c -> a',
    ],
    [[task('a', { dependencies: ['a'] })], 'in a circle: a -> a'],
    [[task('a', { dependencies: ['z'] })], 'the task "a" depends on "z", which there is not'],
    [[task('a'), task('a')], 'two tasks have the id "a"'],
    [[task('')], 'an id that is not empty'],
  ])('%j is refused before anything runs', async (tasks, message) => {
    await using runtime = createRuntime()
    expect(() => scheduleTasks(runtime, tasks, { agent: workerOf(() => 'x') })).toThrow(message)
  })

  test.each<[string, object, string]>([
    ['input in place of prompt', { input: 'Look.' }, 'the task "a" has no option "input". It has id, prompt, agent, '],
    ['nothing that is asked', {}, 'the task "a" has no prompt: say what is asked.'],
    [
      'a prompt that is data',
      { prompt: { q: 1 } },
      'prompt must be a text, or a function of the results, not an object.',
    ],
    ['dependencies in one text', { prompt: 'x', dependencies: 'b' }, 'dependencies must be a list of ids, not "b".'],
    ['an agent by its name', { prompt: 'x', agent: 'worker' }, 'agent must be an agent, not "worker".'],
  ])('a task with %s is refused, and nothing is started', (_, more, told) => {
    const runtime = { run: () => expect.fail('it was started') }

    expect(() =>
      scheduleTasks(runtime, [{ id: 'a', ...more } as ScheduledTask], { agent: workerOf(() => 'ok') }),
    ).toThrow(told)
  })

  test('a thousand tasks in a row are no depth', async () => {
    const tasks = Array.from({ length: 1_000 }, (_, at) =>
      task(`t${at}`, at === 0 ? {} : { dependencies: [`t${at - 1}`] }),
    )
    await using runtime = createRuntime()
    const schedule = scheduleTasks(runtime, tasks, { agent: workerOf(() => 'x') })
    schedule.cancel()

    expect((await schedule.result).counts.total).toBe(1_000)
  })

  test('what depends on a failure is skipped with the reason; the numbers add up', async () => {
    const tasks = [task('a'), task('b', { dependencies: ['a'] }), task('c', { dependencies: ['b'] }), task('d')]
    const { success, counts, results, summary } = await run(
      tasks,
      (request) => (asked(request) === 'a' ? passing() : 'ok'),
      { maxRetries: 0 },
    )

    expect(success).toBe(false)
    expect(counts).toEqual({ total: 4, completed: 1, failed: 1, cancelled: 0, skipped: 2 })
    expect(results.map(({ reason }) => reason)).toEqual([
      expect.stringContaining('busy'),
      '"a", which it depends on, is failed.',
      '"b", which it depends on, is skipped.',
      null,
    ])
    expect(summary).toContain('✗ b (skipped): "a", which it depends on, is failed.')
    expect(summary).toMatch(/1 of 4 tasks completed, 1 failed, 0 cancelled, 2 skipped; 0 tokens, [\d.]+ s\.$/)
  })

  test('a task that passes at the third try, and one that never does', async () => {
    let tries = 0
    const flaky = await run([task('a')], () => (++tries < 3 ? passing() : 'at last'))
    expect(flaky.results[0]).toMatchObject({ status: 'completed', retries: 2, text: 'at last' })
    expect(flaky.events.filter(({ type }) => type === 'taskRetry')).toEqual([
      { type: 'taskRetry', taskId: 'a', retryCount: 1 },
      { type: 'taskRetry', taskId: 'a', retryCount: 2 },
    ])

    const never = await run([task('a')], passing, { maxRetries: 2 })
    expect(never.results[0]).toMatchObject({ status: 'failed', retries: 2 })
  })

  test('a task that takes too long is stopped; the others are not', async () => {
    const tasks = [task('slow', { timeoutMs: 30 }), task('quick')]
    const { results } = await run(
      tasks,
      (request) => (asked(request) === 'slow' ? { text: 'x', delayMs: 60_000 } : 'ok'),
      { maxRetries: 0 },
    )

    expect(results[0]).toMatchObject({ status: 'failed', outcome: { status: 'timed_out' } })
    expect(results[1]).toMatchObject({ status: 'completed' })
  })

  test('a cancel stops what runs and skips the rest; progress only grows', async () => {
    await using runtime = createRuntime()
    const tasks = ['a', 'b', 'c'].map((id) => task(id))
    const schedule = scheduleTasks(runtime, tasks, {
      agent: workerOf((request) => (asked(request) === 'a' ? 'ok' : { text: 'x', delayMs: 60_000 })),
      maxConcurrency: 2,
    })
    const events: ScheduleEvent[] = []
    for await (const event of schedule) {
      events.push(event)
      if (event.type === 'taskCompleted') schedule.cancel('enough')
    }
    const { counts, results } = await schedule.result

    expect(counts.completed).toBe(1)
    expect(results[1]).toMatchObject({ status: 'cancelled', reason: 'enough' })
    expect(events[0]).toEqual({ type: 'started', total: 3 })
    expect(events.some(({ type }) => type === 'cancelled')).toBe(true)
    expect(events.some(({ type }) => type === 'completed')).toBe(false)
    const percentages = events.flatMap((event) => (event.type === 'progress' ? [event.percentage] : []))
    expect(percentages).toEqual([...percentages].sort((one, other) => one - other))
    expect(percentages.at(-1)).toBe(100)
  })

  test('stopOnFirstError skips what has not begun', async () => {
    const { counts } = await run([task('a'), task('b')], passing, {
      maxConcurrency: 1,
      maxRetries: 0,
      stopOnFirstError: true,
    })

    expect(counts).toMatchObject({ failed: 1, skipped: 1 })
  })

  test('the summary keeps to its room, shared evenly; usage is summed', async () => {
    const usage = { inputTokens: 10, outputTokens: 5 }
    const { summary, usage: all } = await run([task('a'), task('b')], () => ({ text: 'word '.repeat(2_000), usage }), {
      summaryMaxTokens: 200,
    })

    expect(summary.length).toBeLessThanOrEqual(800)
    expect(summary).toMatch(/^✓ a: word/)
    expect(summary).toContain('\n\n✓ b: word')
    expect(summary).toContain('30 tokens')
    expect(all).toMatchObject({ inputTokens: 20, outputTokens: 10 })
  })

  test('tools that a task is allowed or denied are enforced', async () => {
    const named = (text: string) => tool({ description: text, input: { type: 'object' }, execute: () => text })
    const model = scriptedModel((request) => lastResult(request) ?? { calls: [{ name: 'write', input: {} }] })
    const worker = agent({ name: 'w', instructions: '', model, tools: { read: named('r'), write: named('written') } })
    await using runtime = createRuntime()
    const tasks = [task('free'), task('only', { allowedTools: ['read'] }), task('not', { deniedTools: ['wr*'] })]
    const { results } = await scheduleTasks(runtime, tasks, { agent: worker }).result

    expect(results[0]?.text).toBe('written')
    expect(results[1]?.text).toContain('write is not allowed here')
    expect(results[2]?.text).toContain('write is not allowed here')
  })

  test('inside a tool the tasks are children of the call', async () => {
    const worker = workerOf(() => 'done')
    const runtime = createRuntime()
    const work = tool({
      description: 'Works.',
      input: { type: 'object' },
      execute: async () =>
        (await scheduleTasks(runtime, [task('a'), task('b')], { agent: worker }).result).counts.completed,
    })
    const model = scriptedModel((request) => lastResult(request) ?? { calls: [{ name: 'work', input: {} }] })
    const { text, children } = await runtime.run(agent({ name: 'h', instructions: '', model, tools: { work } }), 'go')
      .result
    await runtime.close()

    expect({ text, children }).toEqual({ text: '2', children: 2 })
  })
})
