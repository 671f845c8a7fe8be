import { beforeEach, describe, expect, test } from 'vitest'
import { runProgram, skipUnlessBuilt } from '../support/program.ts'

/** The first thing that a process does: what it needs is still to be loaded, and the run is not in the rows yet. */
describe('in a process that has loaded nothing', () => {
  beforeEach(skipUnlessBuilt)

  const clerk = `
    import { agent, createRuntime } from 'legate'
    import { scriptedModel } from 'legate/testing'
    const model = scriptedModel(['Yes.', 'Yes.'])
    const clerk = agent({ name: 'clerk', instructions: '', model })
    const runtime = createRuntime()`

  test.each<[string, string, string]>([
    ['a run that nobody awaits is done before close', `runtime.run(clerk, 'go'); await runtime.close()`, '1\n'],
    ['so is one that was spawned', `runtime.spawn(clerk, 'go').catch(() => undefined); await runtime.close()`, '1\n'],
    [
      'one that is cancelled at once is cancelled',
      `const run = runtime.run(clerk, 'go')
      run.cancel('stop')
      await runtime.close()
      console.log((await run.result).status)`,
      'cancelled\n1\n',
    ],
    [
      'a run is found by its id at once: cancel',
      `const run = runtime.run(clerk, 'go')
      await runtime.cancel(run.id)
      console.log((await run.result).status)`,
      'cancelled\n1\n',
    ],
    [
      'a run is found by its id at once: attach, conversation, tree, why',
      `const run = runtime.run(clerk, 'go')
      const found = await Promise.all([
        runtime.attach(run.id).then(({ result }) => result).then(({ text }) => text),
        runtime.conversation(run.conversationId).then(({ id }) => id === run.conversationId),
        runtime.tree(run.conversationId).then(({ runs }) => runs.length),
        runtime.why(run.id).then(({ runId }) => runId === run.id),
      ])
      console.log(JSON.stringify(found))`,
      '["Yes.",true,1,true]\n1\n',
    ],
    [
      'a signal that was aborted before costs no call',
      `console.log((await runtime.run(clerk, 'go', { abortSignal: AbortSignal.abort() }).result).status)`,
      'cancelled\n0\n',
    ],
  ])('%s', async (_, code, printed) => {
    expect(await runProgram(`${clerk}\n${code}\nconsole.log(model.requests.length)`)).toBe(printed)
  })
})
