// Two owners at one server: what agents write and remember for one is not there for the other.

import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Calls } from '../attack/support/obedient.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { Place, root, skipUnlessBuilt } from './support/cli.ts'
import { serveModel } from './support/model-server.ts'
import { project } from './support/project.ts'
import { ask, type Served, served } from './support/served.ts'

beforeEach(skipUnlessBuilt)

const MODULE = path.join(root, 'test/cli/programs/owners.mjs')
const SECRET = 'ANN-4711'

function shop(): Place {
  const place = new Place()
  place.more['XDG_DATA_HOME'] = path.join(place.folder, 'data')
  place.more['LEGATE_TEST_SERVER'] = path.join(root, 'test/tools/mcp/programs/server.mjs')
  return place
}

/** A person at this server, by a token of the command line. */
async function person(place: Place, server: Served, name: string): Promise<Served> {
  const made = await place.run(['token', 'add', name, '--scopes', 'start,read,cancel,approve'])
  return { ...server, token: made.stdout.trim() }
}

interface Answered {
  readonly runId: string
  readonly outcome: { readonly status: string; readonly text: string } | null
}

async function start(
  who: Served,
  agent: string,
  input: string,
  wait = 20,
): Promise<{ status: number; body: Answered }> {
  const answer = await ask(who, `/v1/runs?wait=${wait}`, { method: 'POST', body: JSON.stringify({ agent, input }) })
  return { status: answer.status, body: (await answer.json()) as Answered }
}

/** What an agent was told by each of these calls, for this person. */
async function told(who: Served, agent: string, calls: Calls): Promise<string[]> {
  const { body } = await start(who, agent, JSON.stringify(calls))
  expect(body.outcome?.status).toBe('completed')
  return JSON.parse(body.outcome?.text ?? '[]') as string[]
}

/** What the server said at its start, but that its store lies where agents work. */
function said({ process }: Served): string[] {
  return process.stderr.split('\n').filter((line) => line !== '' && !line.includes('lies where agents work'))
}

const REMEMBER: Calls = [['memory_remember', { category: 'facts', text: `My IBAN is ${SECRET}.` }]]
const RECALL: Calls = [['memory_recall', {}]]

describe('legate serve --files own', () => {
  it('keeps files and memories of two owners apart, whatever tool asks, and those of this machine beside them', async () => {
    const place = shop()
    writeFileSync(path.join(place.folder, 'common.txt'), 'for this machine')
    const server = await served(place, [MODULE, '--files', 'own', '--trust-programs'])
    const [ann, eve] = [await person(place, server, 'ann'), await person(place, server, 'eve')]
    await told(ann, 'coder', [['write_file', { path: 'notes.txt', content: SECRET }], ...REMEMBER])
    const look: Calls = [
      ['read_text_file', { path: 'notes.txt' }],
      ['list_directory', { path: '.' }],
      ['search_text', { text: SECRET }],
      ['tree', {}],
      ['shell', { command: 'cat notes.txt' }],
      ['shell', { command: 'pwd -P' }],
      ['odd__folder', {}],
      ...RECALL,
      ['memory_forget', { category: 'facts' }],
    ]
    const [eves, locals, annas] = [
      await told(eve, 'coder', look),
      await told(server, 'coder', look),
      await told(ann, 'coder', look.slice(0, -1)),
    ]

    expect([eves, locals].join('\n')).not.toContain(SECRET)
    expect(annas.filter((text) => text.includes(SECRET))).toHaveLength(4)
    const owned = new RegExp(`^${realpathSync(place.folder)}/\\.legate\\.owners/[0-9a-f]{64}$`)
    for (const folder of [...annas.slice(5, 7), ...eves.slice(5, 7)]) expect(folder).toMatch(owned)
    expect(locals.slice(5, 7)).toEqual([realpathSync(place.folder), realpathSync(place.folder)])
    expect(locals[1]).toContain('common.txt')
    expect(said(server)).toEqual([])
  })

  it('goes on in the same area after it was killed, and an owner who is forgotten leaves nothing', async () => {
    const place = shop()
    const first = await served(place, [MODULE, '--files', 'own', '--trust-programs'])
    const ann = await person(place, first, 'ann')
    const calls: Calls = [
      ['write_file', { path: 'asked/a.txt', content: SECRET }],
      ['shell', { command: 'pwd -P' }],
      ...REMEMBER,
    ]
    const waiting = await start(ann, 'coder', JSON.stringify(calls), 1)
    first.process.kill('SIGKILL')
    await first.process.ended
    const second = await served(place, [MODULE, '--files', 'own', '--trust-programs'])
    const again = { ...second, token: ann.token }
    const { approvals } = (await (await ask(again, '/v1/approvals')).json()) as {
      approvals: { nodeId: string; seen: string }[]
    }
    const [asked] = approvals
    const word = JSON.stringify({ allow: true, seen: asked?.seen })
    await ask(again, `/v1/approvals/${asked?.nodeId}`, { method: 'POST', body: word })
    const result = await ask(again, `/v1/runs/${waiting.body.runId}/result?wait=20`)
    const { outcome } = (await result.json()) as Answered
    const [, folder = ''] = JSON.parse(outcome?.text ?? '[]') as string[]
    const memories = path.join(place.folder, 'data/legate/memory/.legate.owners')

    expect(readFileSync(path.join(folder, 'asked/a.txt'), 'utf8')).toBe(SECRET)
    expect(readdirSync(memories)).toHaveLength(1)
    const gone = await ask(second, '/v1/owners/ann', { method: 'DELETE' })
    expect(await gone.json()).toEqual({ owner: 'ann', trees: 1, cancelled: 0, files: 2 })
    expect([existsSync(folder), readdirSync(memories)]).toEqual([false, []])
  })

  it('legate forget --owner deletes them without a server too, in its folder', async () => {
    const place = shop()
    const server = await served(place, [MODULE, '--files', 'own', '--trust-programs'])
    const ann = await person(place, server, 'ann')
    await told(ann, 'coder', [['write_file', { path: 'notes.txt', content: SECRET }], ...REMEMBER])
    server.process.kill('SIGTERM')
    await server.process.ended
    const { code, stdout } = await place.run(['forget', '--owner', 'ann', '--yes'])

    expect([code, stdout]).toEqual([
      0,
      'Everything of ann is deleted: 1 tree, 0 open runs cancelled, 2 files, its tokens, webhooks and counters.\n',
    ])
    expect(readdirSync(path.join(place.folder, '.legate.owners'))).toEqual([])
  })
})

describe('legate serve without --trust-programs', () => {
  it('does not start where a token of others reaches an agent that starts programs, and says what to choose', async () => {
    const place = shop()
    await place.run(['token', 'add', 'ann'])
    const refused = await place.run(['serve', MODULE, '--files', 'own', '--port', '0'])
    await place.run(['token', 'add', 'eve', '--agents', 'keeper'])

    expect([refused.code, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toMatch(/coder \(ann\)\..*--trust-programs.*--agents.*--grant-deny 'exec:\*'/s)
    expect(refused.stderr).not.toContain('keeper')
  })

  it('starts, and refuses the start of such an agent to a token that was made afterwards', async () => {
    const place = shop()
    const server = await served(place, [MODULE, '--files', 'own'])
    const ann = await person(place, server, 'ann')
    const refused = await start(ann, 'coder', '[]')

    expect([refused.status, refused.body]).toMatchObject([422, { code: 'programs_untrusted' }])
    expect(await told(ann, 'keeper', RECALL)).toEqual(['Nothing has been remembered yet.'])
    expect(await told(server, 'coder', [['shell', { command: 'echo mine' }]])).toEqual([
      expect.stringContaining('mine'),
    ])
  })
})

describe('legate serve without --files', () => {
  it('says at its start which agents others cannot start, and refuses them with both choices', async () => {
    const place = shop()
    const server = await served(place, [MODULE])
    const ann = await person(place, server, 'ann')
    const refused = await start(ann, 'coder', '[]')

    expect(said(server)).toEqual([
      'legate: Only you can start coder: nobody has said whose files other owners have. --files own gives each owner files of its own, and --files shared gives all of them this folder. A module that makes its own files says it there.',
    ])
    expect([refused.status, refused.body]).toMatchObject([
      422,
      {
        code: 'files_undecided',
        detail: expect.stringMatching(/"coder".*'own'.*'shared'.*--files own or --files shared/),
      },
    ])
    expect(await (await ask(ann, '/v1/runs')).json()).toMatchObject({ runs: [] })
    expect(await told(ann, 'keeper', RECALL)).toEqual(['Nothing has been remembered yet.'])
    expect(await told(server, 'coder', [['list_directory', { path: '.' }]])).toHaveLength(1)
  })

  it('shares one folder where it is told to', async () => {
    const place = shop()
    const server = await served(place, [MODULE, '--files', 'shared', '--trust-programs'])
    const [ann, eve] = [await person(place, server, 'ann'), await person(place, server, 'eve')]
    await told(ann, 'coder', [['write_file', { path: 'notes.txt', content: 'common' }]])

    expect((await told(eve, 'coder', [['read_text_file', { path: 'notes.txt' }]])).join()).toContain('common')
    expect(said(server)).toEqual([])
  })

  it('a recipe is refused and started in the same way, and remembers for its owner unless --memory says otherwise', async () => {
    const head = 'title: Clerk\ndescription: d\nprompt: Go.\n'
    const place = project({
      'worker.yaml': head.replace('Clerk', 'Worker'),
      'clerk.yaml': `${head}extensions:\n  - {type: builtin, name: memory}\n`,
    })
    place.more['XDG_DATA_HOME'] = path.join(place.folder, 'data')
    await serveModel(place, (mock) => {
      mock.on({ hasToolResult: true }, { content: 'Done.' })
      mock.on({}, { toolCalls: [{ name: 'memory_recall', arguments: '{}' }] })
    })
    const server = await served(place, ['worker.yaml', 'clerk.yaml', '--memory', 'shared'])
    const ann = await person(place, server, 'ann')

    expect(server.process.stderr).toContain('Only you can start worker:')
    expect((await start(ann, 'worker', 'Go.')).status).toBe(422)
    expect((await start(ann, 'clerk', 'Go.')).body.outcome?.status).toBe('completed')
  })

  it('says what --files and --memory take, and where files of a module are decided', async () => {
    const place = project({})
    // Inside the package, so that `legate` means the package itself.
    const own = path.join(tempFolder(onTestFinished, path.join(root, 'dist')), 'own.mjs')
    writeFileSync(
      own,
      `import { agent } from 'legate'\nimport { memoryFiles } from 'legate/tools'\nconst a = agent({ name: 'a', instructions: '' })\nexport default { files: memoryFiles(), agents: [a] }\n`,
    )
    const wrong = await place.run(['serve', MODULE, '--files', 'mine'])
    const decided = await place.run(['serve', own, '--files', 'own', '--trust-programs'])

    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--files is own or shared, not "mine".')])
    expect([decided.code, decided.stderr]).toEqual([
      2,
      expect.stringContaining("The module makes its own files: say it there, with diskFiles({ owners: 'own' })."),
    ])
  })
})
