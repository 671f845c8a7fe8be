import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { Place } from '../cli/support/cli.ts'
import { runProgram } from './program.ts'
import { tempFolder } from './temp-folder.ts'

/** A store that can be lost. */
export interface LosableStore {
  /** Its file or address. */
  readonly name: string
  /** Makes a backup while processes work on it. */
  backUp(): Promise<void>
  /** Throws away what is there, and puts the backup in its place. */
  bringBack(): Promise<void>
}

/** An agent that pays twice at a time with one worker, and one that waits for a person before it deploys. */
const AGENTS = `
  import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
  import { setTimeout as sleep } from 'node:timers/promises'
  import { agent, createRuntime, tool } from 'legate'
  import { postgresStore } from 'legate/store/postgres'
  import { sqliteStore } from 'legate/store/sqlite'
  const { LEGATE_PLACE: place, LEGATE_FOLDER: folder } = process.env
  const says = (calls) => ({
    id: 'test/model',
    async *stream({ messages }) {
      const results = messages.filter(({ role }) => role === 'tool')
      if (results.length > 0) yield { type: 'text-delta', text: results.map(({ content }) => content).join(' | ') }
      else for (const [at, name] of calls.entries()) yield { type: 'tool-call', id: 'call_' + at, name, input: { at } }
      yield { type: 'finish', reason: results.length > 0 ? 'stop' : 'tool-calls', usage: null }
    },
  })
  const input = { type: 'object' }
  const pay = tool({
    description: 'Pays.',
    input,
    execute: async () => {
      writeFileSync(folder + '/paying', '')
      while (!existsSync(folder + '/gate')) await sleep(10)
      appendFileSync(folder + '/marks', 'paid\\n')
      return 'paid by the tool'
    },
  })
  const deploy = tool({ description: 'Deploys.', input, approval: 'required', execute: () => 'deployed' })
  const payer = agent({ name: 'payer', instructions: 'You pay.', tools: { pay }, model: says(['pay', 'pay']) })
  const careful = agent({ name: 'careful', instructions: 'You deploy.', tools: { deploy }, model: says(['deploy']) })
  const store = place.startsWith('postgres:') ? postgresStore(place) : sqliteStore(place)
  const runtime = createRuntime({ store, agents: [payer, careful], engine: { workers: 1 } })
`

const WORK = `${AGENTS}
  const asked = runtime.run(careful, 'go')
  for await (const event of asked) if (event.type === 'approval-request') break
  const { status } = await runtime.run(payer, 'go').result
  console.log(status)
  await runtime.close()
`

const GO_ON = `${AGENTS}
  const runs = await runtime.resume()
  const paid = runs.find(({ agent }) => agent === 'payer') ?? runs.at(-1)
  const { status, text, uncertain } = await paid.result
  const { findings } = await runtime.audit({ verify: true })
  console.log(JSON.stringify({ status, text, uncertain, findings, open: (await runtime.approvals()).length }))
  await runtime.close()
`

/** A store that came back from a backup, with real processes. */
export function testLost(name: string, make: (folder: string) => Promise<LosableStore>): void {
  async function lose(use: (place: Place, store: LosableStore, env: Record<string, string>) => Promise<void>) {
    const folder = tempFolder(onTestFinished)
    const store = await make(folder)
    const place = new Place()
    place.more['LEGATE_DB'] = store.name
    const env = { LEGATE_PLACE: store.name, LEGATE_FOLDER: folder }
    const working = runProgram(WORK, env)
    working.catch(() => undefined)
    while (!existsSync(path.join(folder, 'paying'))) await sleep(20)
    const refused = await place.run(['restored'])
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/Processes work on this store.*: \d+ on /) })
    await store.backUp()
    writeFileSync(path.join(folder, 'gate'), '')
    expect(await working).toBe('completed\n')
    await store.bringBack()
    await use(place, store, env)
    expect(marksIn(folder)).toBe(2)
  }

  test(`I4: ${name} comes back from a backup: what was done after that is uncertain, and not done again`, {
    timeout: 60_000,
  }, async () => {
    await lose(async (place, _, env) => {
      const said = await place.run(['restored'])
      expect(said).toMatchObject({ code: 0, stderr: '' })
      expect(said.stdout).toMatch(
        /^2 trees with an open run, last written at 20\d\d-.*\n1 claim taken away\. 1 process of/,
      )
      expect(said.stdout).toMatch(/2 calls may have taken effect after the backup.*\n1 request for a person/s)

      const items = (await place.run(['inbox', '--json'])).stdout.trim().split('\n')
      const doubts = items.map((line) => JSON.parse(line)).filter(({ type }) => type === 'uncertain')
      expect(doubts).toHaveLength(2)
      expect(JSON.stringify(doubts)).toContain('restored from a backup')
      const why = await place.run(['why', doubts[0].runId])
      expect(why.stdout).toMatch(/uncertain|in doubt/)

      const found = JSON.parse(await runProgram(GO_ON, env))
      expect(found).toMatchObject({ status: 'completed', findings: [], open: 1 })
      expect(found.uncertain).toHaveLength(2)
      expect(JSON.parse((await place.run(['restored', '--json'])).stdout)).toMatchObject({ uncertain: [], claims: 0 })
    })
  })

  test(`${name} comes back from a backup: on request no run goes on by itself`, { timeout: 60_000 }, async () => {
    await lose(async (place) => {
      const report = JSON.parse((await place.run(['restored', '--cancel', '--json'])).stdout)
      expect(report).toMatchObject({ cancelled: 2, trees: 2, claims: 1, processes: 1 })
      expect(report.uncertain).toHaveLength(2)
      expect((await place.run(['audit', '--verify'])).stdout).toContain('no errors')
      const open = (await place.run(['ps', '--json'])).stdout
      expect(open).not.toMatch(/"state":"(?:running|waiting)"/)
    })
  })
}

function marksIn(folder: string): number {
  return readFileSync(path.join(folder, 'marks'), 'utf8').trim().split('\n').length
}
