import path from 'node:path'
import { LLMock } from '@copilotkit/aimock'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { stopMock } from '../support/mock-provider.ts'
import { type Place, skipUnlessBuilt } from './support/cli.ts'
import { serveModel } from './support/model-server.ts'
import { project } from './support/project.ts'

beforeEach(skipUnlessBuilt)

const NO_KEYS = {
  OPENAI_API_KEY: '',
  ANTHROPIC_API_KEY: '',
  GEMINI_API_KEY: '',
  GOOGLE_API_KEY: '',
  GOOGLE_GENERATIVE_AI_API_KEY: '',
  OPENROUTER_API_KEY: '',
  DASHSCOPE_API_KEY: '',
  LEGATE_MODEL: '',
  OLLAMA_HOST: '127.0.0.1:9',
}

function agentFile(name: string, model: string): Readonly<Record<string, string>> {
  const file = `.claude/agents/${name}.md`
  return { [file]: `---\nname: ${name}\ndescription: Writes.\nmodel: ${model}\n---\n\nYou write as ${name}.\n` }
}

function place(files: Readonly<Record<string, string>>, config?: object): Place {
  const made = project({ ...files, ...(config === undefined ? {} : { 'config.json': JSON.stringify(config) }) })
  Object.assign(made.more, NO_KEYS)
  if (config !== undefined) made.more['LEGATE_CONFIG'] = path.join(made.folder, 'config.json')
  return made
}

/** A server that stands for Anthropic. */
async function serveAnthropic({ more }: Place, text: string): Promise<LLMock> {
  const mock = new LLMock({ port: 0, logLevel: 'silent' })
  mock.on({}, { content: text })
  await mock.start()
  onTestFinished(() => stopMock(mock))
  Object.assign(more, { ANTHROPIC_BASE_URL: `${mock.url}/v1`, ANTHROPIC_API_KEY: 'key' })
  return mock
}

function modelsOf(mock: LLMock): readonly unknown[] {
  return mock.getRequests().map(({ body }) => (body as { model?: unknown }).model)
}

describe('the model that a file names', () => {
  test('a model that does not exist is the trouble that explain shows, once', async () => {
    const warned = vi.spyOn(process, 'emitWarning')
    onTestFinished(() => warned.mockRestore())

    const { code, stdout, stderr } = await place(agentFile('writer', 'nope/x')).run(['explain', 'writer'])

    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    expect(stdout.match(/There is no model "nope\/x"/g)).toHaveLength(1)
    expect(warned).not.toHaveBeenCalled()
  })

  test.each([
    ['sonnet', 'claude-sonnet-5'],
    ['opus', 'claude-opus-5'],
    ['claude-sonnet-4-5', 'claude-sonnet-4-5'],
  ])('`model: %s` runs with the key of Anthropic alone', async (model, asked) => {
    const here = place(agentFile('poet', model))
    const mock = await serveAnthropic(here, 'Roses.')
    const { code, stdout } = await here.run(['run', 'poet', 'Write.'])

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Roses.\n' })
    expect(modelsOf(mock)).toEqual([asked])
  })

  test('settings of goose name provider and model; a provider alone is its default model', async () => {
    const recipe = (settings: string) => `title: T\ndescription: D\nprompt: Go.\nsettings: ${settings}\n`
    const here = place({
      'both.yaml': recipe('{goose_provider: anthropic, goose_model: claude-haiku-4-5}'),
      'provider.yaml': recipe('{goose_provider: anthropic}'),
      'model.yaml': recipe('{goose_model: claude-opus-5}'),
    })
    const mock = await serveAnthropic(here, 'Done.')
    for (const file of ['both.yaml', 'provider.yaml', 'model.yaml']) {
      expect(await here.run(['run', file])).toMatchObject({ code: 0, stdout: 'Done.\n' })
    }

    expect(modelsOf(mock)).toEqual(['claude-haiku-4-5', 'claude-sonnet-5', 'claude-opus-5'])
  })

  test('the config file says what an alias is; `inherit` and `default` are the configured model', async () => {
    const files = { ...agentFile('a', 'sonnet'), ...agentFile('b', 'inherit'), ...agentFile('c', 'default') }
    const here = place(files, { model: 'sonnet', aliases: { sonnet: 'anthropic/claude-x' } })
    const mock = await serveAnthropic(here, 'Done.')
    for (const name of ['a', 'b', 'c']) expect(await here.run(['run', name, 'Go.'])).toMatchObject({ code: 0 })

    expect(modelsOf(mock)).toEqual(['claude-x', 'claude-x', 'claude-x'])
  })

  test('@name in a chat asks the provider of the file, not that of the chat', async () => {
    const here = place(agentFile('poet', 'sonnet'))
    const anthropic = await serveAnthropic(here, 'Roses.')
    const openai = await serveModel(here, (one) => one.on({}, { content: 'A poem.' }))
    const { code, stdout } = await here.run(['chat'], { input: '@poet write\n' })

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'A poem.\n' })
    expect(modelsOf(anthropic)).toEqual(['claude-sonnet-5'])
    expect(modelsOf(openai)).toEqual(['gpt-5'])
  })
})

describe('which model it would be, and what is missing for it', () => {
  test('doctor, validate and explain say so', async () => {
    const here = place({ ...agentFile('poet', 'sonnet'), ...agentFile('other', 'inherit') }, { model: 'openai/gpt-5' })
    const file = '.claude/agents/poet.md'
    const doctor = await here.run(['doctor'])
    const validate = await here.run(['validate', file])
    const explain = await here.run(['explain', file])
    const others = await here.run(['explain', 'other'])
    const set = await here.run(['validate', file, '--json'], { env: { ANTHROPIC_API_KEY: 'key' } })

    expect(doctor.stdout).toMatch(/^poet .* anthropic\/claude-sonnet-5 /m)
    expect(doctor.stdout).toMatch(
      /^model: anthropic\/claude-sonnet-5: it needs a key: set ANTHROPIC_API_KEY\. \(poet\)$/m,
    )
    expect(validate).toMatchObject({ code: 0, stdout: expect.stringContaining('set ANTHROPIC_API_KEY') })
    expect(explain.stdout).toMatch(/model +anthropic\/claude-sonnet-5, named by the file; .*set ANTHROPIC_API_KEY/)
    expect(others.stdout).toMatch(/model +openai\/gpt-5, named by model in .*config\.json; .*set OPENAI_API_KEY/)
    expect(JSON.parse(set.stdout)).toMatchObject({ model: 'anthropic/claude-sonnet-5', modelTrouble: null })
  })

  test('a name that nobody knows is told by all of them', async () => {
    const here = place(agentFile('poet', 'composer-1'))
    const [doctor, validate, explain, run] = [
      await here.run(['doctor']),
      await here.run(['validate', '.claude/agents/poet.md']),
      await here.run(['explain', 'poet']),
      await here.run(['run', 'poet', 'Go.']),
    ]
    for (const { stdout, stderr } of [doctor, validate, explain, run]) {
      expect(stdout + stderr).toContain(
        'the model `composer-1` is no "provider/model" and no alias. Say what it stands for: "aliases"',
      )
    }
    expect(explain).toMatchObject({ code: 0, stdout: expect.stringContaining('You write as poet.') })
    expect(run.code).toBe(2)
  })

  test('where nobody names a model, doctor, validate and explain name the line that would', async () => {
    const here = place({ '.claude/agents/a.md': '---\nname: a\ndescription: d\n---\n\nYou write.\n' })
    const env = { ANTHROPIC_API_KEY: 'key' }
    for (const words of [['doctor'], ['validate', '.claude/agents/a.md'], ['explain', 'a']]) {
      const { code, stdout } = await here.run(words, { env })
      expect({ code, stdout }).toEqual({
        code: 0,
        stdout: expect.stringContaining('no model is named: set LEGATE_MODEL=anthropic/claude-sonnet-5'),
      })
      expect((await here.run(words)).stdout).toContain('no model is named and no key is set: set LEGATE_MODEL=')
    }
  })

  test('a file whose model cannot be had need not be changed: the message names --model, which is used instead', async () => {
    const here = place({ ...agentFile('poet', 'composer-1'), ...agentFile('singer', 'opencode/gpt-5.4-mini') })
    const mock = await serveAnthropic(here, 'Roses.')
    for (const name of ['poet', 'singer']) {
      const { code, stderr } = await here.run(['run', name, 'Go.'])
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: expect.stringMatching(/Or choose another model: --model provider\/model\.\n$/),
      })
      expect(await here.run(['run', name, 'Go.', '--model', 'haiku'])).toMatchObject({ code: 0 })
    }

    expect(modelsOf(mock)).toEqual(['claude-haiku-4-5', 'claude-haiku-4-5'])
  })

  test('a key without a model, and a model without a key, name the one line to set', async () => {
    const here = place({ 'a.yaml': 'title: T\ndescription: D\nprompt: Go.\n' })
    const noModel = await here.run(['run', 'a.yaml'], { env: { ANTHROPIC_API_KEY: 'key' } })
    const noKey = await here.run(['run', 'a.yaml', '--model', 'openai/gpt-5'], { env: { ANTHROPIC_API_KEY: 'key' } })
    const nothing = await here.run(['run', 'a.yaml'])

    expect(noModel).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /There is a key for anthropic, but no model was named\. Set LEGATE_MODEL=anthropic\/claude-sonnet-5, .*--model anthropic\/claude-sonnet-5/,
      ),
    })
    expect(noKey.stderr).toMatch(/openai\/gpt-5 needs a key\. Set OPENAI_API_KEY, .*"anthropic\/claude-sonnet-5"/)
    expect(nothing.stderr).toMatch(/no key is set.*ANTHROPIC_API_KEY.*Set LEGATE_MODEL=.*--model/)
  })

  test('--model takes short names too', async () => {
    const here = place({ 'a.yaml': 'title: T\ndescription: D\nprompt: Go.\n' })
    const mock = await serveAnthropic(here, 'Done.')

    expect(await here.run(['run', 'a.yaml', '--model', 'haiku'])).toMatchObject({ code: 0, stdout: 'Done.\n' })
    expect(modelsOf(mock)).toEqual(['claude-haiku-4-5'])
  })
})
