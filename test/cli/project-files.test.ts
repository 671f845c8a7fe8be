import { beforeEach, describe, expect, test } from 'vitest'
import { skipUnlessBuilt } from './support/cli.ts'
import { serveModel } from './support/model-server.ts'
import { project } from './support/project.ts'

beforeEach(skipUnlessBuilt)

const ENV = { LEGATE_MODEL: 'openai/gpt-5', OPENAI_API_KEY: 'key' }
const agent = (fields: string) => `---\nname: a\ndescription: d\n${fields}\n---\n\nDo it.\n`
const HOOKS = 'hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: [{ type: command, command: ./guard.sh }]'

describe('what a project says', () => {
  test('stands in the system prompt, explain names the files, and a flag leaves them out', async () => {
    const place = project({
      'CLAUDE.md': 'Write in Dutch. @more.md',
      'more.md': 'And briefly.',
      'AGENTS.md': 'For others.',
      '.claude/agents/a.md': agent(`memory: project\n${HOOKS}`),
    })
    const told = await place.run(['explain', 'a'], { env: ENV })
    const json = JSON.parse((await place.run(['explain', 'a', '--json'], { env: ENV })).stdout) as Record<
      string,
      unknown
    >
    const untold = await place.run(['explain', 'a', '--no-project-files'], { env: ENV })

    expect(told.stdout).toMatch(/project +CLAUDE\.md, more\.md/)
    expect(told.stdout).toMatch(/memory +of its own, in this project/)
    expect(told.stdout).toContain('PreToolUse of Bash: ./guard.sh (at most 60 s)')
    expect(told.stdout).toMatch(/Write in Dutch\.[\s\S]*And briefly\./)
    expect(told.stdout).not.toContain('For others.')
    expect(json).toMatchObject({
      projectFiles: [expect.stringMatching(/CLAUDE\.md$/), expect.stringMatching(/more\.md$/)],
      hooks: [{ event: 'PreToolUse' }],
    })
    expect(untold.stdout).not.toMatch(/Dutch|project +CLAUDE/)
  })

  test('is sent to the model of a run, and not with the flag', async () => {
    const place = project({
      'AGENTS.md': 'Write in Dutch.',
      'r.yaml': 'title: T\ndescription: D\ninstructions: Help.\nprompt: Go.\nextensions: []\n',
    })
    const mock = await serveModel(place, (model) => model.onMessage(/./, { content: 'Klaar.' }))
    const ran = await place.run(['run', 'r.yaml'])
    await place.run(['run', 'r.yaml', '--no-project-files'])
    const sent = mock.getRequests().map((request) => JSON.stringify(request))

    expect(ran.stdout).toContain('Klaar.')
    expect(sent.map((text) => text.includes('Write in Dutch.'))).toEqual([true, false])
  })
})

describe('what was left out of a file', () => {
  const LEFT_OUT = agent('observer: x\nspeed: 1\nhooks:\n  SessionStart:\n    - hooks: [{ type: command, command: x }]')

  test.each([['run', 'a', 'Go.'], ['chat', 'a'], ['explain', 'a'], ['doctor']])(
    'legate %s says it',
    async (...words) => {
      const place = project({ '.claude/agents/a.md': LEFT_OUT })
      await serveModel(place, (model) => model.onMessage(/./, { content: 'Done.' }))
      const { stdout, stderr } = await place.run(words, words[0] === 'chat' ? { input: 'Go.\n' } : {})

      expectLeftOut(words[0] === 'doctor' ? stdout : stderr)
    },
  )

  test('legate serve says it at its start', async () => {
    const place = project({ '.claude/agents/a.md': LEFT_OUT })
    await serveModel(place, (model) => model.onMessage(/./, { content: 'Done.' }))
    const server = place.legate(['serve', '.claude/agents/a.md', '--port', '0'])
    await server.says('http://')

    expectLeftOut(server.stderr)
  })

  function expectLeftOut(said: string): void {
    const line = said.replace(/\s+/g, ' ')
    expect(line).toContain('`observer` is ignored')
    expect(line).toContain('unknown key `speed`')
    expect(line).toContain('`hooks.SessionStart` is ignored')
  }

  test('a hook that is not understood is one line, and nothing runs', async () => {
    const place = project({
      '.claude/agents/a.md': agent('hooks:\n  PreToolUse:\n    - hooks: [{ type: prompt, prompt: ok? }]'),
    })
    const mock = await serveModel(place, (model) => model.onMessage(/./, { content: 'Done.' }))
    const { code, stderr } = await place.run(['run', 'a', 'Go.'])

    expect(code).toBe(2)
    expect(stderr).toContain('`hooks.PreToolUse` in a.md asks for a hook of the type prompt')
    expect(mock.getRequests()).toEqual([])
  })
})
