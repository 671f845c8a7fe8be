// The package as it is packed, in a folder that has nothing else but what npm installs with it.

import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { LLMock } from '@copilotkit/aimock'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { root, skipUnlessBuilt } from '../cli/support/cli.ts'
import { stopMock } from '../support/mock-provider.ts'
import { tempFolder } from '../support/temp-folder.ts'

/** npm runs these where a package is installed, or warns of them. */
const AT_INSTALL = new Set([
  'preinstall',
  'install',
  'postinstall',
  'prepublish',
  'preprepare',
  'prepare',
  'postprepare',
])

const mock = new LLMock({ port: 0, logLevel: 'silent' })
let folder = ''

beforeEach(skipUnlessBuilt)

beforeAll(async () => {
  folder = tempFolder(afterAll)
  mock.on({}, { content: 'Good evening.' })
  await mock.start()
  await install()
}, 60_000)
afterAll(() => stopMock(mock))

async function install(): Promise<void> {
  const modules = path.join(folder, 'node_modules')
  mkdirSync(modules)
  const packed = await start('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], root)
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }]
  await start('tar', ['-xzf', filename], folder)
  renameSync(path.join(folder, 'package'), path.join(modules, 'legate'))
  const listed = await start('npm', ['ls', '--omit=dev', '--all', '--parseable'], root)
  const wanted = listed.split('\n').slice(1)
  for (const place of wanted.filter((line) => line !== '')) link(place)
  cpSync(path.join(import.meta.dirname, 'programs/installed'), folder, { recursive: true })
}

/** Puts a package of ours into the folder. */
function link(place: string): void {
  const name = path.relative(path.join(root, 'node_modules'), place)
  const file = path.join(folder, 'node_modules', name)
  mkdirSync(path.dirname(file), { recursive: true })
  symlinkSync(place, file)
}

async function start(program: string, args: readonly string[], cwd: string): Promise<string> {
  const here = { ...process.env, HOME: folder, XDG_STATE_HOME: folder, XDG_CONFIG_HOME: folder, LEGATE_DB: 'runs.db' }
  const url = { OPENAI_BASE_URL: `${mock.url}/v1`, ANTHROPIC_BASE_URL: mock.url, OLLAMA_HOST: mock.url }
  const google = { GOOGLE_GENERATIVE_AI_BASE_URL: `${mock.url}/v1beta`, GEMINI_API_KEY: 'key' }
  const env = { ...here, ...url, ...google, OPENAI_API_KEY: 'key', ANTHROPIC_API_KEY: 'key', NODE_PATH: '' }
  return (await promisify(execFile)(program, args, { cwd, env, timeout: 60_000 })).stdout
}

test.for(['openai/gpt-5', 'anthropic/claude-sonnet-5', 'google/gemini-2.5-pro', 'ollama/qwen3'])(
  'legate run --model %s reaches its provider',
  async (model) => {
    const asked = mock.getRequests().length

    expect(
      await start(
        'node',
        ['node_modules/legate/dist/cli/main.js', 'run', 'greeter.md', 'Hello', '--model', model],
        folder,
      ),
    ).toContain('Good evening.')
    expect(mock.getRequests().length).toBeGreaterThan(asked)
  },
)

test('agents are offered and called over MCP, by stdio and by HTTP', async () => {
  expect(await start('node', ['callers.mjs'], folder)).toBe('stdio It greets.\nhttp It greets.\n')
})

test('a model object of a package that the user has installed is used as it is', async () => {
  link(path.join(root, 'node_modules/@ai-sdk/openai'))

  expect(await start('node', ['own-model.mjs'], folder)).toBe('Good evening.\n')
})

test('legate/otel says what to install, and needs nothing else', async () => {
  expect(await start('node', ['telemetry.mjs'], folder)).toBe(
    'DefinitionError definition: otel() needs the package @opentelemetry/api: npm install @opentelemetry/api\n',
  )
  link(path.join(root, 'node_modules/@opentelemetry/api'))
  expect(await start('node', ['telemetry.mjs'], folder)).toBe('It traces.\n')
})

test('nothing runs where the package is installed', () => {
  const { scripts } = JSON.parse(readFileSync(path.join(folder, 'node_modules/legate/package.json'), 'utf8'))

  expect(Object.keys(scripts).filter((name) => AT_INSTALL.has(name))).toEqual([])
})
