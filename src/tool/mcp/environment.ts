import type { ServerSettings } from './options.ts'

/** What a server's process gets: little of ours, what is said for it, and its secrets. */
export function serverEnvironment(
  env: Readonly<Record<string, string>>,
  secrets: ReadonlyMap<string, string>,
): Record<string, string> {
  const inherited = INHERITED.flatMap((name) => {
    const value = process.env[name]
    // A function that a shell has exported is code.
    return value === undefined || value.startsWith('()') ? [] : [[name, value] as const]
  })
  const own = Object.entries(env).filter(([name]) => !isDisallowedVariable(name))
  const secret = [...secrets].filter(([name]) => !isDisallowedVariable(name))
  return Object.fromEntries([...inherited, ...own, ...secret])
}

/** May a definition set this variable for a program? What decides which program runs and what it loads is not for it. */
export function isDisallowedVariable(name: string): boolean {
  return DISALLOWED.has(name.toUpperCase())
}

/** The variables that a server's address and headers may name: those that were said for it, and no others of ours. */
export function knownTo({ env, envKeys, secrets }: ServerSettings): (name: string) => string | undefined {
  return (name) => (Object.hasOwn(env, name) ? env[name] : envKeys.includes(name) ? secrets(name) : undefined)
}

/** The text with each `${NAME}` as it is known, and the names that are not. */
export function substituted(
  text: string,
  lookUp: (name: string) => string | undefined,
): { readonly text: string; readonly missing: readonly string[] } {
  const missing: string[] = []
  const full = text.replace(/\$\{(\w+)\}/g, (whole, name: string) => {
    const value = lookUp(name)
    if (value === undefined) missing.push(name)
    return value ?? whole
  })
  return { text: full, missing }
}

const INHERITED = [
  ...['HOME', 'LOGNAME', 'USER', 'PATH', 'SHELL', 'TERM', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR', 'NO_COLOR'],
  ...['XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME', 'XDG_RUNTIME_DIR'],
]

const DISALLOWED: ReadonlySet<string> = new Set([
  ...['PATH', 'PATHEXT', 'SYSTEMROOT', 'WINDIR', 'COMSPEC', 'SHELL', 'IFS', 'ENV', 'BASH_ENV', 'ZDOTDIR', 'CDPATH'],
  ...['LD_LIBRARY_PATH', 'LD_PRELOAD', 'LD_AUDIT', 'LD_DEBUG', 'LD_BIND_NOW', 'LD_ASSUME_KERNEL'],
  ...['DYLD_LIBRARY_PATH', 'DYLD_INSERT_LIBRARIES', 'DYLD_FRAMEWORK_PATH', 'DYLD_FALLBACK_LIBRARY_PATH'],
  ...['PYTHONPATH', 'PYTHONHOME', 'PYTHONSTARTUP', 'NODE_OPTIONS', 'NODE_PATH', 'RUBYOPT', 'RUBYLIB', 'GEM_PATH'],
  ...['GEM_HOME', 'PERL5LIB', 'PERL5OPT', 'CLASSPATH', 'JAVA_TOOL_OPTIONS', 'GO111MODULE', 'GOROOT', 'APPINIT_DLLS'],
  ...['SESSIONNAME', 'TEMP', 'TMP', 'LOCALAPPDATA', 'USERPROFILE', 'HOMEDRIVE', 'HOMEPATH', 'GIT_SSH_COMMAND'],
])
