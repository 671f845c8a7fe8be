import { beforeEach, expect, test } from 'vitest'
import { COMMANDS } from '../commands.ts'
import type { Call } from './command.ts'
import { legate, setNextPlace, setNextStore, withPlaces } from './next-command.ts'

function told(values: Call['values'], env: NodeJS.ProcessEnv = {}): void {
  setNextPlace({ words: [], values, env, commands: COMMANDS })
}

beforeEach(() => told({}))

test('a command names the store or the server of the command line, and nothing that the environment says', () => {
  told({ store: "my own's.db" })
  expect(legate('show 1f0c9a2e')).toBe(`legate show 1f0c9a2e --store 'my own'\\''s.db'`)
  expect(legate('resume 1f0c9a2e')).toBe(`legate resume 1f0c9a2e --store 'my own'\\''s.db'`)
  told({ server: 'http://127.0.0.1:4747' }, { LEGATE_TOKEN: 'lgt_1' })
  expect(legate('show 1f0c9a2e')).toBe('legate show 1f0c9a2e --server http://127.0.0.1:4747')
  told({}, { LEGATE_DB: 'other.db' })
  expect(legate('show 1f0c9a2e')).toBe('legate show 1f0c9a2e')
  told({}, { LEGATE_SERVER: 'http://127.0.0.1:4747' })
  expect(legate('show 1f0c9a2e')).toBe('legate show 1f0c9a2e')
  told({ store: 'runs.db' }, { LEGATE_SERVER: 'http://127.0.0.1:4747' })
  expect(legate('ps')).toBe('legate ps --store runs.db')
})

test('a command that no server takes asks for the store of the server, and one without a store names none', () => {
  told({ server: 'unix:/tmp/a.sock' })
  for (const words of ['resume 1f0c9a2e', 'chat --continue 1f0c9a2e', 'audit --repair']) {
    expect(legate(words)).toBe(`legate ${words} --store STORE-OF-SERVER`)
  }
  expect(legate('validate a.yaml')).toBe('legate validate a.yaml')
})

test('no command shows a token or a password', () => {
  told({ server: 'http://127.0.0.1:4747/#token=lgt_secret' })
  expect(legate('ps')).toBe('legate ps --server http://127.0.0.1:4747 --token TOKEN')
  told({ server: 'http://127.0.0.1:4747', token: 'lgt_secret' })
  expect(legate('ps')).toBe('legate ps --server http://127.0.0.1:4747 --token TOKEN')
  told({ store: 'postgres://ann:secret@db:5433/app?schema=a&password=secret' })
  expect(legate('ps')).toBe("legate ps --store 'postgres://ann:PASSWORD@db:5433/app?schema=a&password=PASSWORD'")
  told({ store: 'postgres://ann:sec ret@' })
  expect(legate('ps')).not.toContain('ret@')
})

test('the commands in a text of others get the place, after the id that they are about', () => {
  setNextStore('/home/me/runs.db')
  const to = '--store /home/me/runs.db'
  expect(withPlaces('Type legate approvals 1f0c9a2e.')).toBe(`Type legate approvals 1f0c9a2e ${to}.`)
  expect(withPlaces('`legate audit --verify`')).toBe(`\`legate audit ${to} --verify\``)
  const whole = '01a1de88-4321-79ec-b083-0809287dc468'
  expect(withPlaces(`\`legate forget ${whole}\``)).toBe(`\`legate forget ${whole} ${to}\``)
  const seen = 'a'.repeat(64)
  expect(withPlaces(`legate settle 1f0c9a2e --seen ${seen} with --leave`)).toBe(
    `legate settle 1f0c9a2e --seen ${seen} ${to} with --leave`,
  )
  for (const text of ['legate show 1f0c9a2e --store a.db', 'a legate of Rome', 'legate demo', 'legate/store/sqlite']) {
    expect(withPlaces(text)).toBe(text)
  }
  setNextStore(undefined)
  expect(withPlaces('legate ps')).toBe('legate ps')
})
