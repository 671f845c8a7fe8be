import { copyFileSync, existsSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { agent, createRuntime } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { commitOf, next } from '../../src/testing/conformance/store-rows.ts'
import { localStore } from '../support/rows.ts'
import { leaveUnaudited } from '../support/unaudited.ts'
import { Place, program, skipUnlessBuilt } from './support/cli.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

describe('runs that are over', () => {
  const place = new Place(afterAll)
  let [id, otherId, failedId] = ['', '', '']
  beforeAll(async () => {
    if (!existsSync(program)) return
    ;[id = '', otherId = '', failedId = ''] = await place.endedRuns('lead', 'lead', 'failing')
  })

  test('are audited and verified: nothing is wrong', async () => {
    const { code, stdout, stderr } = await place.run(['audit', '--verify'])

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(
      /^3 trees, 7 conversations, 7 runs, \d+ nodes; \d+ rows and \d+ commits checked against their hashes: no errors\.\n$/,
    )
  })

  test('are explained and compared', async () => {
    const [why, same, differs] = await Promise.all([
      place.run(['why', failedId.slice(-8)]),
      place.run(['diff', id, otherId]),
      place.run(['diff', id, failedId, '--json']),
    ])

    expect(why.stdout).toMatch(/^failing: It has ended, failed: /)
    expect([same.code, same.stderr]).toEqual([0, ''])
    expect(same.stdout).toMatch(
      /^- \w{8} completed, 7\.4k tokens, .*\n\+ \w{8} completed, .*\n0 differ, \d+ are equal\.\n$/,
    )
    expect(differs.code).toBe(1)
    expect(JSON.parse(differs.stdout)).toMatchObject({ first: { runId: id }, second: { runId: failedId } })
  })

  test('are listed and compared in words, also messages of users and turns that children began', async () => {
    const place = new Place()
    const runtime = createRuntime({ store: sqliteStore(place.store) })
    const worker = agent({ name: 'worker', instructions: '', model: scriptedModel(['done']) })
    const spawned = { calls: [{ name: 'subagent_spawn', input: { name: 'worker', prompt: 'Work.' } }] }
    const model = scriptedModel([spawned, 'It works.', 'It is done.'])
    const tools = backgroundSubagents({ agent: worker })
    const host = await runtime.run(agent({ name: 'host', instructions: '', model, tools }), 'Begin.').result
    await runtime.idle()
    const other = await runtime.run(agent({ name: 'b', instructions: '', model: scriptedModel(['ok']) }), 'Hello.')
      .result
    await runtime.close()

    const [ps, diff] = await Promise.all([place.run(['ps', '--all']), place.run(['diff', host.runId, other.runId])])

    expect(ps.stdout).toContain('hears of subagents in the background')
    expect(ps.stdout).not.toContain('{"background"')
    expect(diff.stdout).toMatch(/^- host\/0 user_message: Begin\.$/m)
    expect(diff.stdout).toMatch(/^\+ b\/0 user_message: Hello\.$/m)
  })

  test('are drawn', async () => {
    const [mermaid, dot] = await Promise.all([place.run(['show', id, '--graph']), place.run(['show', id, '--dot'])])

    expect(mermaid.stdout).toMatch(/^flowchart TD\n {2}subgraph g0\["lead \w{8}, turn 1: completed"\]\n/)
    expect(mermaid.stdout.match(/subgraph/g)).toHaveLength(3)
    expect(mermaid.stdout).not.toContain('\u001b')
    expect(dot.stdout).toMatch(/^digraph legate \{\n/)
  })

  test('are written to a terminal with every mark of direction and control spelled out, as lines that can be imported', async () => {
    const place = new Place()
    const model = scriptedModel(['Done \u202etxt.exe\u2066 \u009b31m \u200b \\u202e \u{e0041}\ud800 😀.'])
    const writer = createRuntime({ store: sqliteStore(place.store) })
    const { runId, text } = await writer.run(agent({ name: 'writer', instructions: '', model }), 'Go \u202e on\u007f.')
      .result
    await writer.close()

    const terminal = new Terminal(place, ['export', runId], { cols: 80, rows: 24 })
    expect(await terminal.ended).toBe(0)
    const shown = terminal.written.replaceAll('\r\n', '\n')
    const piped = await place.run(['export', runId])

    expect(shown).toContain('Done \\u202etxt.exe\\u2066 \\u009b31m')
    expect(shown).not.toMatch(/[\p{Cf}\u007f-\u009f]/u)
    expect(piped.stdout).toContain('Done \u202etxt.exe')
    const valuesOf = (lines: string) =>
      lines
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
    expect(valuesOf(shown)).toEqual(valuesOf(piped.stdout))
    const there = path.join(place.folder, 'there.db')
    expect(await place.run(['import', '--store', there], { input: shown })).toMatchObject({ code: 0, stderr: '' })
    const reader = createRuntime({ store: sqliteStore(there) })
    onTestFinished(() => reader.close())
    expect((await (await reader.attach(runId)).result).text).toBe(text)
  })

  test('are sent as a trace: the same bytes each time, to a collector too, and without a word of what was said', async () => {
    const received: string[] = []
    const collector = createServer((request, response) => {
      let body = `${request.method} ${request.url} ${request.headers['content-type']} `
      request.on('data', (piece) => (body += piece))
      request.on('end', () => {
        received.push(body)
        response.statusCode = received.length > 1 ? 503 : 200
        response.end()
      })
    })
    await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void collector.close())
    const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`

    const [first, second] = [await place.run(['export', id, '--otlp']), await place.run(['export', id, '--otlp'])]
    const sent = await place.run(['export', id, '--otlp', '--to', url])
    const refused = await place.run(['export', id, '--otlp', '--to', url])
    const wrong = await place.run(['export', id, '--to', url])
    const two = await place.run(['export', id, '--otlp', '--html', 'run.html'])

    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(second.stdout).toBe(first.stdout)
    expect(received[0]).toBe(`POST /v1/traces application/json ${first.stdout.trimEnd()}`)
    expect(sent).toMatchObject({ code: 0, stdout: `Sent to ${new URL(url).host}.\n` })
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('answered 503') })
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('add --otlp') })
    expect(two).toMatchObject({ code: 2, stderr: expect.stringContaining('not both') })
    const missing = await place.run(['export', id, '--html', 'not/there/run.html'])
    expect(missing).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        'Cannot write not/there/run.html: there is no folder not/there. Make it, or name another file.',
      ),
    })
    expect(await place.run(['export', id, '--html', '.'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Cannot write .: it is a folder. Name a file in it.'),
    })
    expect(JSON.parse(first.stdout).resourceSpans[0].scopeSpans[0].spans[0].traceId).toBe(id.replaceAll('-', ''))
  })

  test('are carried into another store, by a file and by a pipe', async () => {
    const exported = await place.run(['export', id])
    const file = path.join(place.folder, 'run.jsonl')
    writeFileSync(file, exported.stdout)
    const there = path.join(place.folder, 'there.db')

    const byFile = await place.run(['import', file, '--store', there])
    const byPipe = await place.run(['import', '--json', '--store', there], { input: exported.stdout })
    const [audited, again] = await Promise.all([
      place.run(['audit', '--verify', '--store', there]),
      place.run(['export', id, '--store', there]),
    ])

    expect(byFile).toEqual({
      code: 0,
      stderr: '',
      stdout: `Imported: ${id.slice(-8)}. legate show ${id.slice(-8)} --store ${there}\n`,
    })
    expect(JSON.parse(byPipe.stdout)).toMatchObject({ runId: id })
    expect(audited.stdout).toContain('no errors')
    expect(again.stdout.split('\n').toSorted()).toEqual(exported.stdout.split('\n').toSorted())
    const torn = await place.run(['import', '--store', there], { input: exported.stdout.slice(0, -50) })
    expect(torn.code).toBe(1)
    expect(torn.stderr).toMatch(/^legate: Line \d+ of the export cannot be taken/)
    const missing = await place.run(['import', '/nowhere/run.jsonl', '--store', there])
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no file /nowhere/run.jsonl.') })
  })

  test('runs that were changed behind our back are found, and not made to look right', async () => {
    const there = path.join(place.folder, 'changed.db')
    copyFileSync(place.store, there)
    const db = connectTo(there)
    db.run(`UPDATE rows SET data = json_set(data, '$.nodeCount', 9) WHERE data ->> '$.turn' = ?`, [id])
    db.close()

    const found = await place.run(['audit', '--verify', '--store', there])
    const mended = await place.run(['audit', '--repair', '--store', there])
    const again = await place.run(['audit', '--verify', '--store', there])

    expect(found.code).toBe(1)
    expect(found.stdout).toContain(`error altered_row: The turn ${id} is not what was written.\n`)
    expect(mended).toMatchObject({ code: 1, stdout: expect.stringContaining(`The turn ${id} is not what`) })
    expect(again).toMatchObject({ code: 1, stdout: found.stdout })
  })
})

test('an open run in an import is stopped and named with what it may do, until somebody resumes it', async () => {
  const place = new Place()
  const [id = ''] = await place.parkedRuns('careful')
  const { stdout: lines } = await place.run(['export', id.slice(-8)])
  const [there, elsewhere] = [path.join(place.folder, 'there.db'), path.join(place.folder, 'elsewhere.db')]

  const told = await place.run(['import', '--store', there], { input: lines })
  const ps = await place.run(['ps', '--all', '--store', there])
  const asJson = await place.run(['import', '--go-on', '--json', '--store', elsewhere], { input: lines })
  const open = await place.run(['approvals', '--store', elsewhere])

  expect(told.stdout).toContain(`1 run of it was open:\n  careful ${id.slice(-8)} was stopped`)
  expect(told.stdout).toContain(`To let one go on: legate resume ${id.slice(-8)} --store ${there}\n`)
  expect(ps.stdout).toMatch(/cancelled/)
  expect(JSON.parse(asJson.stdout)).toMatchObject({ goOn: true, open: [{ runId: id, agent: 'careful' }] })
  expect(open.stdout).toContain('wants  look')
})

test('a file of one endless line is refused in words, and leaves no store', async () => {
  const place = new Place()
  const [file, there] = [path.join(place.folder, 'zeros'), path.join(place.folder, 'new.db')]
  writeFileSync(file, '')
  truncateSync(file, 600_000_000)

  const { code, stderr } = await place.run(['import', file, '--store', there])

  expect([code, stderr]).toEqual([1, expect.stringMatching(/^legate: Line 1 of the export .* longer than 16000000/)])
  expect(existsSync(there)).toBe(false)
})

test('a run whose process was killed says so, in words', async () => {
  const place = new Place()
  const [id = ''] = await place.orphans('lead')

  const { code, stdout } = await place.run(['why', id.slice(-8)])

  expect(code).toBe(0)
  expect(stdout).toMatch(/lead: It waits for "scout", the run [\w-]+\.\n/)
  expect(stdout).toMatch(
    /lead > scout: The process \d+ that worked on the call of "look" is gone\.\n {2}→ legate resume --module FILE/,
  )
})

test('what can be mended is, by audit --repair', async () => {
  const place = new Place()
  const [id = ''] = await place.endedRuns('lead')
  const store = localStore(place.runtime())
  leaveUnaudited(store)
  const turn = store.turn(id)
  if (turn === undefined) throw new Error('There is no run.')
  const account = { ...turn.account, live: 7 }
  await store.commit(commitOf(turn.rootId, { turns: [next(turn, { account })] }))

  const found = await place.run(['audit'])
  const mended = await place.run(['audit', '--repair'])
  const again = await place.run(['audit', '--verify'])

  expect(found).toMatchObject({ code: 1, stdout: expect.stringContaining('wrong_account') })
  expect(mended).toMatchObject({ code: 0, stdout: expect.stringContaining('wrong_account') })
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('no errors') })
})
