import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { localStore } from '../support/rows.ts'
import { agentsModule, Place, skipUnlessBuilt, until } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

/** A store with a run whose process was killed while it paid; another process has gone on with it, to its end. */
const made = new Place(afterAll)
let runId = ''
let nodeId = ''
/** What the lists show the call with. */
let seen: readonly string[] = []

function marksOf(place: Place): string[] {
  const file = path.join(place.folder, 'marks')
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}

function withMarks(place: Place): Place {
  place.more['LEGATE_TEST_MARKS'] = path.join(place.folder, 'marks')
  return place
}

beforeAll(async () => {
  withMarks(made)
  const { worker, ids } = await made.startRuns(['payer'])
  runId = ids[0] ?? ''
  await until('it has paid', () => marksOf(made)[0]?.startsWith('paid '))
  worker.kill('SIGKILL')
  await worker.ended
  const early = await made.run(['settle', runId.slice(-8), '--leave'])
  expect(early).toMatchObject({ code: 2, stderr: expect.stringContaining('No call of the run') })
  made.open()
  const resumed = await made.run(['resume', '-m', agentsModule])
  expect(resumed.stdout).toMatch(/It may or may not have taken effect/)
  const runtime = made.runtime(afterAll)
  nodeId = localStore(runtime).turn(runId)?.account.uncertain[0] ?? ''
  const [item] = await runtime.inbox()
  seen = ['--seen', item?.type === 'uncertain' ? item.seen : '']
})

/** The killed run, for one test alone. */
function killed(): Place {
  const place = withMarks(made.copy())
  place.open()
  return place
}

/** What the newest run of the conversation says. */
async function answerOf(place: Place, id: string): Promise<string> {
  await place.run(['resume', '-m', agentsModule])
  return (await place.run(['show', id])).stdout
}

describe('legate settle, after kill -9 in the middle of an effect', () => {
  test('inbox lists the call with its commands, and show too', async () => {
    const place = killed()
    const short = nodeId.slice(-8)

    const { code, stdout } = await place.run(['inbox'])
    const json = await place.run(['inbox', '--json'])
    const shown = await place.run(['show', runId])

    expect(code).toBe(0)
    expect(stdout).toMatch(
      new RegExp(
        `^${short} {2}payer\\n {2}doubt {2}pay \\{"amount":5\\}: it may or may not have taken effect\\n {2}why .*\\n {2}since .*\\n {2}legate settle ${short} ${seen.join(' ')} --happened \\[--result JSON\\], or --run-again, or --leave\\n$`,
      ),
    )
    expect(JSON.parse(json.stdout)).toMatchObject({ type: 'uncertain', nodeId, runId, agent: 'payer', tool: 'pay' })
    expect(shown.stdout).toContain(`legate settle ${short} ${seen.join(' ')}`)
    expect((await place.run(['inbox', '--owner', 'ann'])).stdout).toBe('Nothing needs a person.\n')
  })

  test('--happened: the run goes on with the result, in another process, and nothing is paid again', async () => {
    const place = killed()

    const settled = await place.run([
      'settle',
      nodeId,
      ...seen,
      '--happened',
      '--result',
      '{"receipt":7}',
      '--by',
      'ann',
    ])
    const again = await place.run(['settle', nodeId, ...seen, '--run-again'])
    const [, next = ''] = /goes on as (\w{8})/.exec(settled.stdout) ?? []

    expect(settled).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^pay \{"amount":5\} happened, says ann\. It goes on as \w{8} with the result\. Cont/,
      ),
    })
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('ann has said that it happened') })
    expect(await answerOf(place, next)).toContain('In the end: {"receipt":7}')
    expect(marksOf(place)).toEqual([])
    expect((await place.run(['inbox'])).stdout).toBe('Nothing needs a person.\n')
    expect((await place.run(['show', runId])).stdout).toContain('it took effect, said ann')
    expect((await place.run(['audit', '--verify'])).code).toBe(0)
  })

  test('--run-again: it is called once more, with the same key', async () => {
    const place = killed()

    const settled = await place.run(['settle', runId.slice(-8), ...seen, '--run-again', '--json'], {
      env: { USER: 'ben' },
    })
    const told = JSON.parse(settled.stdout)

    expect(told).toMatchObject({ nodeId, by: 'ben', how: 'not_happened', obstacle: null })
    expect(await answerOf(place, told.runId)).toContain('In the end: paid by the tool')
    expect(marksOf(place)).toEqual(marksOf(made))
    expect((await place.run(['inbox'])).stdout).toBe('Nothing needs a person.\n')
    expect((await place.run(['audit', '--verify'])).code).toBe(0)
  })

  test('--leave: nothing runs, and it is off the list', async () => {
    const place = killed()

    const settled = await place.run(['settle', nodeId.slice(-8), ...seen, '--leave', '--by', 'ann'])

    expect(settled).toMatchObject({ code: 0, stdout: 'pay {"amount":5} is left as it is, says ann.\n' })
    expect((await place.run(['inbox'])).stdout).toBe('Nothing needs a person.\n')
    expect((await place.run(['settle', runId.slice(-8), '--leave'])).stderr).toContain('No call of the run')
  })

  test('refuses a word on a call that was not shown, or on another one, and shows it', async () => {
    const place = killed()
    const [none, other, short] = await Promise.all([
      place.run(['settle', nodeId, '--run-again']),
      place.run(['settle', nodeId, '--seen', '0'.repeat(64), '--run-again']),
      place.run(['settle', nodeId, '--seen', '0'.repeat(16), '--run-again']),
    ])

    expect(none.stderr).toMatch(/^legate: Nothing was answered: the request must be seen first/)
    expect(other.stderr).toMatch(/^legate: Nothing was answered: this is not the request you saw/)
    for (const { stderr } of [none, other]) {
      expect(stderr).toContain(`\n  pay {"amount":5}\n  legate settle ${nodeId.slice(-8)} ${seen.join(' ')} --happened`)
    }
    expect(short.stderr).toContain('--seen needs 64 hex digits')
    expect([none, other, short].map(({ code }) => code)).toEqual([2, 2, 2])
    expect((await place.run(['inbox'])).stdout).toContain('pay {"amount":5}')
  })

  test('refuses what is no word, and says what is', async () => {
    const place = killed()
    const [none, two, result, other] = await Promise.all([
      place.run(['settle', nodeId]),
      place.run(['settle', nodeId, '--leave', '--happened']),
      place.run(['settle', nodeId, '--leave', '--result', '5']),
      place.run(['settle', localStore(place.runtime()).nodesOf(runId)[0]?.id ?? '', '--leave']),
    ])

    for (const ended of [none, two]) {
      expect(ended).toMatchObject({ code: 2, stderr: expect.stringMatching(/with one of --happened .* or --leave/) })
    }
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining('it needs --happened') })
    expect(other).toMatchObject({ code: 2, stderr: expect.stringMatching(/is finished, not uncertain\. legate inbox/) })
  })

  test('two processes settle it at the same moment: one wins, the other hears its name', async () => {
    const place = killed()
    const names = ['ann', 'ben']

    const ended = await Promise.all(names.map((by) => place.run(['settle', nodeId, ...seen, '--happened', '--by', by])))

    const winner = ended.findIndex(({ code }) => code === 0)
    expect(ended.map(({ code }) => code).toSorted()).toEqual([0, 1])
    expect(ended[1 - winner]?.stderr).toContain(`${names[winner]} has said that it happened`)
  })
})

test('legate inbox shows requests, questions and failed runs with their commands', async () => {
  const place = new Place()
  await place.parkedRuns('careful', 'curious')
  await place.endedRuns('failing')

  const { code, stdout } = await place.run(['inbox'])

  expect(code).toBe(0)
  expect(stdout).toMatch(/^\w{8} {2}careful\n {2}wants {2}look[\s\S]*legate approve \w{8} --seen/)
  expect(stdout).toMatch(/\n\w{8} {2}curious\n {2}asks {3}Which port\?[\s\S]*legate answer \w{8} TEXT\n/)
  expect(stdout).toMatch(
    /\n(\w{8}) {2}failing\n {2}ended {2}failed\n {2}why [\s\S]*legate show \1, then legate retry \1\n$/,
  )
})

test('legate inbox shows a run that no process has code for', async () => {
  const place = new Place()
  const [id = ''] = await place.orphans('talker')

  const { stdout } = await place.run(['inbox'])

  expect(stdout).toMatch(
    new RegExp(`^\\w{8} {2}talker\\n {2}waits {2}.*\\n {2}since .*\\n {2}legate why ${id.slice(-8)}`),
  )
})
