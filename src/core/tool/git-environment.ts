// The environment in which git starts no program that a repository names: whoever can write a repository's configuration could
// otherwise run anything through `git status`.
//
// Stays true:
// - Every program that the runtime starts gets these settings; git reads them after those of the repository.
// - The user's own settings stay: those of the system and the home folder, and those in the environment, win.
// - What no setting can take away is in REMAINING, and SECURITY.md names it.

import path from 'node:path'
import { nodeFs } from '../base/node-system.ts'
import { looksSecret } from '../base/secrets/shapes.ts'

type Environment = Readonly<Record<string, string | undefined>>
type Setting = readonly [key: string, value: string]

/** Settings of git that name a program, with a value that names none, or the usual one. */
export const NEUTRAL: readonly Setting[] = Object.freeze([
  ['core.fsmonitor', 'false'],
  ['core.hooksPath', '/dev/null'],
  ['core.sshCommand', 'ssh'],
  ['core.askPass', ''],
  ['core.editor', ':'],
  ['sequence.editor', ':'],
  ['core.pager', 'cat'],
  ['core.alternateRefsCommand', 'true'],
  ['credential.helper', ''],
  ['interactive.diffFilter', 'cat'],
  ['gpg.program', 'gpg'],
  ['gpg.openpgp.program', 'gpg'],
  ['gpg.x509.program', 'gpgsm'],
  ['gpg.ssh.program', 'ssh-keygen'],
  ['gpg.ssh.defaultKeyCommand', 'false'],
  ['imap.tunnel', 'false'],
  ['instaweb.httpd', 'lighttpd -f'],
  ['sendemail.sendmailCmd', 'false'],
  ['sendemail.toCmd', 'true'],
  ['sendemail.ccCmd', 'true'],
  ['sendemail.headerCmd', 'true'],
  // These name no program, but lead to one: an address, and a repository that somebody put into the folder.
  ['protocol.ext.allow', 'never'],
  ['safe.bareRepository', 'explicit'],
])

/** The first of several values counts, or each of them does: only a variable of its own stands before those of a repository. */
const NEUTRAL_VARIABLES: Environment = { GIT_PROXY_COMMAND: '' }

/**
 * Settings that name a program and that no environment makes neutral: they have a name of their own in the middle, or no value
 * that means none.
 */
export const REMAINING: readonly string[] = Object.freeze([
  ...['alias.*', 'browser.*.cmd', 'browser.*.path', 'diff.*.command', 'diff.*.textconv', 'diff.external'],
  ...['difftool.*.cmd', 'difftool.*.path', 'filter.*.clean', 'filter.*.process', 'filter.*.smudge'],
  ...['gc.recentObjectsHook', 'guitool.*.cmd', 'hook.*.command', 'man.*.cmd', 'man.*.path', 'merge.*.driver'],
  ...['mergetool.*.cmd', 'mergetool.*.path', 'pager.*', 'remote.*.receivepack', 'remote.*.uploadpack'],
  ...['remote.*.vcs', 'sendemail.*.*', 'submodule.*.update', 'tar.*.command', 'trailer.*.cmd', 'trailer.*.command'],
])

/** Adds the settings to the environment of a program. */
export async function withNeutralGit(env: Environment): Promise<Environment> {
  const given = settingsIn(env)
  // A variable named after a key is withheld from programs like a key, and so half of the user's settings would be.
  const own = settingsIn(process.env).filter((one) => isPassedOn(one) && !given.some((other) => isSame(one, other)))
  const settings = [...NEUTRAL, ...(await userSettings()), ...own, ...given]
  const written = settings.flatMap(([key, value], at): Setting[] => [
    [`GIT_CONFIG_KEY_${at}`, key],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ])
  const others = Object.entries(env).filter(([name]) => !ENTRY.test(name))
  return {
    ...NEUTRAL_VARIABLES,
    ...Object.fromEntries(others),
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(written),
  }
}

const ENTRY = /^GIT_CONFIG_(?:KEY|VALUE)_\d+$/
const MOST_SETTINGS = 1_000

/** The settings that an environment gives to git. Those that are there by half are left out: git would refuse all. */
function settingsIn(env: Environment): readonly Setting[] {
  const count = Math.min(Number(env['GIT_CONFIG_COUNT'] ?? 0) || 0, MOST_SETTINGS)
  return Array.from({ length: count }).flatMap((_, at): Setting[] => {
    const [key, value] = [env[`GIT_CONFIG_KEY_${at}`], env[`GIT_CONFIG_VALUE_${at}`]]
    return key === undefined || value === undefined ? [] : [[key, value]]
  })
}

function isSame([key, value]: Setting, [other, said]: Setting): boolean {
  return key === other && value === said
}

const KEYS: ReadonlySet<string> = new Set(NEUTRAL.map(([key]) => key.toLowerCase()))

/** An empty helper takes away those of single addresses, too. */
function isNeutral([key]: Setting): boolean {
  return KEYS.has(key.toLowerCase()) || /^credential\..+\.helper$/i.test(key)
}

/** A setting of the user that every program may get: it holds no secret, and no script, in which one could stand in any form. */
function isPassedOn(setting: Setting): boolean {
  const [, value] = setting
  return isNeutral(setting) && !looksSecret(value) && !SCRIPT.test(value)
}

/** `!gh auth git-credential` is a command; `!f() { echo password=abc; }; f` is a script. */
const SCRIPT = /^\s*!.*[;|&(){}<>=%`\n]/s

let asked: Promise<readonly Setting[]> | undefined

/** The values of these settings for the user and the system, outside of every repository: git is asked once, with the first program. */
function userSettings(): Promise<readonly Setting[]> {
  asked ??= askUserSettings()
  return asked
}

/** Asks git anew. None where there is no git. */
export async function askUserSettings(): Promise<readonly Setting[]> {
  return mayAsk() ? askGit() : []
}

/** On a Mac without developer tools, the first `git` opens a window that offers them. */
function mayAsk(): boolean {
  if (process.platform !== 'darwin') return true
  return ['/Library/Developer/CommandLineTools', '/Applications/Xcode.app'].some((place) => nodeFs.existsSync(place))
}

const ASK_MS = 2_000

async function askGit(): Promise<readonly Setting[]> {
  const { execFile } = await import('node:child_process')
  const { PATH = '', GIT_DIR: _, GIT_WORK_TREE: __, GIT_COMMON_DIR: ___, ...env } = process.env
  const safePath = PATH.split(path.delimiter).filter((folder) => path.isAbsolute(folder))
  const args = ['config', '-z', '--includes', '--show-scope', '--get-regexp', '.']
  const options = { cwd: '/', env: { ...env, PATH: safePath.join(path.delimiter) }, timeout: ASK_MS }
  return new Promise((resolve) => {
    execFile('git', args, options, (error, printed) => resolve(error === null ? readSettings(printed) : []))
  })
}

/** Reads `scope NUL key LF value NUL`. A program in a folder that is not named in full would be one of the repository. */
function readSettings(printed: string): readonly Setting[] {
  const parts = printed.split('\0')
  const found: Setting[] = []
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [scope, text = ''] = [parts[at], parts[at + 1]]
    const end = text.indexOf('\n')
    const setting: Setting = end < 0 ? [text, 'true'] : [text.slice(0, end), text.slice(end + 1)]
    const isOfUser = scope === 'system' || scope === 'global'
    if (isOfUser && isPassedOn(setting) && !isInRepository(setting)) found.push(setting)
  }
  return found
}

function isInRepository([key, value]: Setting): boolean {
  if (key === 'core.hookspath') return !/^[~/%]/.test(value)
  const [program = ''] = value.replace(/^!/, '').split(/\s/)
  return program.includes('/') && !/^[~/%$"'(]/.test(program)
}
