import { nodeOs, nodePath } from '../node-system.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The folder for what belongs to the user and to no project: `$XDG_STATE_HOME/legate`. */
export function stateFolder(env: Environment = process.env): string {
  return userFolder(env['XDG_STATE_HOME'], ['.local', 'state'])
}

/** The file of the user's settings: `$LEGATE_CONFIG`, else `legate/config.json` in `$XDG_CONFIG_HOME` or `~/.config`. */
export function settingsFile(env: Environment = process.env): { readonly file: string; readonly isNamed: boolean } {
  const { join, resolve } = nodePath()
  const named = env['LEGATE_CONFIG'] ?? ''
  if (named !== '') return { file: resolve(named), isNamed: true }
  return { file: join(userFolder(env['XDG_CONFIG_HOME'], ['.config']), 'config.json'), isNamed: false }
}

/** A path that is not absolute counts as none. */
function userFolder(named: string | undefined, usual: readonly string[]): string {
  const { isAbsolute, join } = nodePath()
  const folder = named !== undefined && isAbsolute(named) ? named : join(nodeOs().homedir(), ...usual)
  return join(folder, 'legate')
}
