// `legate serve` with its store in the folder of its agents: what a tenant can make them read.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import path from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { proveSelf } from '../../src/core/store/process-proof.ts'
import { Place, root, skipUnlessBuilt } from './support/cli.ts'
import { ask, type Served, served } from './support/served.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

const readerModule = path.join(root, 'test/cli/programs/reader.mjs')

/** The token of a tenant, who may start agents and read what they say. */
async function tenant(place: Place, server: Served): Promise<Pick<Served, 'base' | 'token'>> {
  const { stdout } = await place.run(['token', 'add', 'eve', '--scopes', 'start,read'])
  return { base: server.base, token: stdout.trim() }
}

/** What the agent answers to a message of hers. */
async function told(eve: Pick<Served, 'base' | 'token'>, input: string): Promise<string> {
  const body = JSON.stringify({ agent: 'reader', input })
  const started = await ask(eve, '/v1/runs?wait=20', { method: 'POST', body })
  const { runId } = (await started.json()) as { runId: string }
  const result = (await (await ask(eve, `/v1/runs/${runId}/result?wait=20`)).json()) as { outcome: { text: string } }
  return result.outcome.text
}

const TOKEN = /lgt_[0-9a-f]{16}_[\w-]{43}/

describe('a server whose store is in the workspace', () => {
  it('I11: hands no file of its own to an agent that is told to read, write, list or delete it', async () => {
    const place = new Place()
    const server = await served(place, [readerModule, '--files', 'shared'])
    const eve = await tenant(place, server)
    await place.run(['open', '--print'])
    const state = readdirSync(path.join(place.folder, 'legate'))
    expect(state).toEqual(expect.arrayContaining(['serve.token', expect.stringMatching(/^serve-\d+\.json$/)]))
    const missing = await told(eve, 'read_text_file nothing')
    expect(missing).toContain('Path not found: /workspace/nothing')
    const own = ['serve.json', 'serve.html', 'runs.db', 'runs.db-wal', 'runs.db-shm', 'runs.db-journal', 'legate']
    for (const name of [...own, ...state.map((one) => `legate/${one}`), 'legate/config.json']) {
      for (const act of ['read_text_file NAME', 'write_file NAME hacked', 'delete_file NAME', 'list_directory NAME']) {
        const said = await told(eve, act.replace('NAME', name))
        expect([act, name, said]).toEqual([act, name, missing.replace('/workspace/nothing', `/workspace/${name}`)])
      }
    }
    expect(await told(eve, 'list_directory ')).toBe('<empty>')
    expect(await told(eve, 'search_files *')).toBe('<empty>')
    renameSync(place.store, path.join(place.folder, 'copy'))
    expect(await told(eve, 'read_text_file copy').catch(() => 'not found')).not.toContain('SQLite')
    renameSync(path.join(place.folder, 'copy'), place.store)
    expect(existsSync(path.join(place.folder, 'serve.json'))).toBe(false)
  }, 60_000)

  it('keeps the token of this machine out of every file but its own, and says that the store is exposed', async () => {
    const place = new Place()
    const server = await served(place, [readerModule, '--files', 'shared'])
    await place.run(['open', '--print'])
    expect(server.process.stderr).toContain('warning: the store, runs.db, lies where agents work (/workspace/runs.db)')
    const files = readdirSync(place.folder, { recursive: true, encoding: 'utf8' })
      .map((name) => path.join(place.folder, name))
      .filter((file) => statSync(file).isFile())
    const withToken = files.filter((file) => TOKEN.test(readFileSync(file, 'latin1')))
    expect(withToken).toEqual([path.join(place.folder, 'legate', 'serve.token')])
    for (const name of readdirSync(path.join(place.folder, 'legate'))) {
      expect(statSync(path.join(place.folder, 'legate', name)).mode & 0o777).toBe(0o600)
    }
    expect(statSync(path.join(place.folder, 'legate')).mode & 0o777).toBe(0o700)
    const { stdout } = await place.run(['doctor'])
    expect(stdout).toContain('the store, runs.db, lies where agents work (/workspace/runs.db)')
    const apart = await served(place, [
      readerModule,
      '--store',
      path.join(place.folder, '..', `${path.basename(place.folder)}.db`),
    ])
    expect(apart.process.stderr).not.toContain('the store')
  })
})

describe('legate open', () => {
  /** A page that somebody else serves, and who asked for it. */
  async function otherPage(): Promise<{ url: string; asked: string[] }> {
    const asked: string[] = []
    const page = createServer((request, answer) => {
      asked.push(request.url ?? '')
      answer.writeHead(200, { 'content-type': 'text/html' }).end('<p>hello')
    })
    await new Promise<void>((resolve) => {
      page.listen(0, '127.0.0.1', resolve)
    })
    onTestFinished(() => void page.close())
    return { url: `http://127.0.0.1:${(page.address() as { port: number }).port}`, asked }
  }

  /** What `legate open` says at a terminal where this file has this text. */
  async function opened(place: Place, file: string, text: string): Promise<{ code: number | null; written: string }> {
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text, { mode: 0o600 })
    const terminal = new Terminal(place, ['open'], { cols: 200, rows: 10, env: { BROWSER: 'true' } })
    const code = await terminal.ended
    expect(terminal.written).not.toContain('Opened')
    expect(terminal.written).not.toContain('token=')
    return { code, written: terminal.written }
  }

  it('believes no file of another process, and none that another user may have written', async () => {
    const place = new Place()
    await place.endedRuns('talker')
    const { url, asked } = await otherPage()
    const state = path.join(place.folder, 'legate')
    const own = path.join(state, `serve-${process.pid}.json`)
    const line = { url: `${url}/#token=none`, address: url, takesToken: true, store: place.store, at: 1 }
    const dead = JSON.stringify({ ...line, pid: 1, bootId: 'x', processStart: '1' })
    const proven = JSON.stringify({ ...line, ...proveSelf() })
    const none = { code: 1, written: expect.stringContaining('No server of this store runs on this machine.') }
    expect(await opened(place, path.join(place.folder, 'serve.json'), proven)).toMatchObject(none)
    expect(await opened(place, path.join(state, 'serve-1.json'), dead)).toMatchObject(none)
    for (const address of ['javascript:alert(1)', `${url}/evil`, 'http://me@127.0.0.1', 'file:///etc/passwd', '']) {
      expect(await opened(place, own, JSON.stringify({ ...line, ...proveSelf(), address }))).toMatchObject(none)
    }
    writeFileSync(own, '')
    chmodSync(own, 0o666)
    expect(await opened(place, own, proven)).toMatchObject(none)
    expect(asked).toEqual([])
  })

  it('opens no address that leads beyond this machine, and gives it no token', async () => {
    const place = new Place()
    await served(place, ['--workers', '0', '--store', 'other.db'])
    await place.endedRuns('talker')
    const own = path.join(place.folder, 'legate', `serve-${process.pid}.json`)
    const line = { address: 'http://evil.example', takesToken: true, store: place.store, at: 1, ...proveSelf() }
    const said = await opened(place, own, JSON.stringify(line))
    expect(said).toMatchObject({ code: 0, written: expect.stringContaining('Others reach this address too') })
  })

  it('follows no link to such a file', async () => {
    const place = new Place()
    const server = await served(place, ['--workers', '0'])
    const folder = path.join(place.folder, 'legate')
    const [file = ''] = readdirSync(folder).filter((name) => /^serve-\d+\.json$/.test(name))
    expect((await place.run(['open'])).stdout).toBe(`${server.url}\n`)
    renameSync(path.join(folder, file), path.join(place.folder, 'moved'))
    symlinkSync(path.join(place.folder, 'moved'), path.join(folder, file))
    expect((await place.run(['open'])).code).toBe(1)
  })
})
