import { isSecretName, isSecretOption, looksSecret } from '../base/secrets/shapes.ts'
import type { ProgramVariable } from '../grant/request.ts'

/**
 * Our variables for a command that a model or a file chose, as this user's shell has them, without those that are named
 * like a secret or hold a key or an address with a password.
 */
export function plainEnvironment(): Record<string, string> {
  return ours((name, value) => !FOLDERS.has(name) && !isSecretName(name) && !looksSecret(value))
}

/** Our variables for a server that is not ours: only those that a program needs to start. */
export function startEnvironment(): Record<string, string> {
  // Excludes a function that a shell has exported, because it is code.
  return ours((name, value) => isStarting(name, value) && !value.startsWith('()') && !looksSecret(value))
}

/** An address of a proxy may hold a key before its host or behind it. */
function isStarting(name: string, value: string): boolean {
  return STARTING.has(name) || (PROXIES.test(name) && !/[@?#]/.test(value))
}

/**
 * The variables that a definition sets for a program, as they are decided. One that is named like a secret is decided by its
 * fingerprint: it says for whom the program works. One that is known to be data, such as the language, changes nothing about the
 * program. All others may decide what runs or loads: nobody can list every variable that makes some program load code.
 */
export function programVariables(env: Readonly<Record<string, string>>): ProgramVariable[] {
  return Object.entries(env).map(([name, value]) => ({ name, value, kind: kindOf(name, value) }))
}

function kindOf(name: string, value: string): ProgramVariable['kind'] {
  if (DATA_NAME.test(name) && DATA_VALUE.test(value)) return 'data'
  return isSecretName(name) && !isLoadingVariable(name) && !NAMES_A_PROGRAM.test(name) ? 'secret' : 'other'
}

/** `TOKEN_COMMAND` holds no token but the program that gives one: whoever decides sees it. */
const NAMES_A_PROGRAM = /_(?:COMMAND|CMD|HELPER|PROGRAM|FILE)$/i

/** True for a variable of an interpreter, a tool or a library that may load code, where its value cannot be shown. */
export function isLoadingVariable(name: string): boolean {
  return isDisallowedVariable(name) || (LOADING.test(name) && !isSecretOption(name))
}

/**
 * True for a variable that is known to decide which program runs or what it loads. No file may set it. A name that holds a `=`
 * sets another variable: the one before the sign.
 */
export function isDisallowedVariable(name: string): boolean {
  return name.includes('=') || DISALLOWED.has(name.toUpperCase()) || DISALLOWED_FAMILY.test(name)
}

function ours(isPassed: (name: string, value: string) => boolean): Record<string, string> {
  const entries = Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && isPassed(name, value) ? [[name, value] as const] : [],
  )
  return Object.fromEntries(entries)
}

/** A program gets its own folder. */
const FOLDERS: ReadonlySet<string> = new Set(['PWD', 'OLDPWD'])

/** Each by its whole name: another name of the same family may be a secret of somebody. */
const STARTING: ReadonlySet<string> = new Set([
  ...['HOME', 'LOGNAME', 'USER', 'PATH', 'SHELL', 'TERM', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'NO_COLOR'],
  ...['ALL', 'ADDRESS', 'COLLATE', 'CTYPE', 'IDENTIFICATION', 'MEASUREMENT', 'MESSAGES', 'MONETARY'].map(locale),
  ...['NAME', 'NUMERIC', 'PAPER', 'TELEPHONE', 'TIME'].map(locale),
  ...['CONFIG_HOME', 'CONFIG_DIRS', 'DATA_HOME', 'DATA_DIRS', 'STATE_HOME', 'CACHE_HOME', 'RUNTIME_DIR'].map(desktop),
  ...['CURRENT_DESKTOP', 'SESSION_TYPE', 'SESSION_CLASS', 'SESSION_DESKTOP', 'SEAT', 'VTNR'].map(desktop),
  ...['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', '__CF_USER_TEXT_ENCODING'],
])
const PROXIES = /^(?:(?:HTTPS?|ALL|NO)_PROXY|(?:https?|all|no)_proxy)$/

function locale(name: string): string {
  return `LC_${name}`
}

function desktop(name: string): string {
  return `XDG_${name}`
}

/** How a program speaks and how long it waits. An account or an address is more than data: it says where the work goes. */
const DATA_NAME =
  /^(?:LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|CI|DEBUG|NODE_ENV|(?:[A-Z][A-Z0-9]*_)*(?:LOG_LEVEL|TIMEOUT|TIMEOUT_MS))$/
/** No path, no list of words. */
const DATA_VALUE = /^[\w.,:@+*-]{0,200}$/

const DISALLOWED: ReadonlySet<string> = new Set([
  ...['PATH', 'PATHEXT', 'SYSTEMROOT', 'WINDIR', 'COMSPEC', 'SHELL', 'IFS', 'ENV', 'BASH_ENV', 'ZDOTDIR', 'CDPATH'],
  ...['NODE_OPTIONS', 'NODE_PATH', 'RUBYOPT', 'RUBYLIB', 'GEM_PATH', 'GEM_HOME', 'PERL5LIB', 'PERL5OPT', 'CLASSPATH'],
  ...['JAVA_TOOL_OPTIONS', 'GO111MODULE', 'GOROOT', 'GOPROXY', 'GOFLAGS', 'APPINIT_DLLS', 'SESSIONNAME', 'TEMP', 'TMP'],
  ...['LOCALAPPDATA', 'USERPROFILE', 'HOMEDRIVE', 'HOMEPATH', 'GIT_SSH', 'GIT_SSH_COMMAND', 'GIT_EXEC_PATH'],
  ...['GIT_TEMPLATE_DIR', 'GIT_EXTERNAL_DIFF', 'GIT_PROXY_COMMAND', 'YARN_NPM_REGISTRY_SERVER'],
])

/** Loaders, and variables that tell package managers and git where to find programs and settings. */
const DISALLOWED_FAMILY =
  /^(?:LD_|DYLD_|BASH_FUNC_|PYTHON(?:PATH|HOME|STARTUP)$|npm_config_|PIP_|UV_(?:\w*INDEX|CONFIG|PYTHON)|GIT_CONFIG)/i

const LOADING =
  /^(?:HOME|XDG_\w+|(?:PYTHON|NODE|BUN|DENO|RUBY|PERL|PHP|LUA|R_|JAVA|_JAVA|JDK|DOTNET|OPENSSL|GIT_|SSH_|RUST|CARGO|COREPACK|YARN|PNPM|UV_|GO(?!OGLE)|MAKE|BASH|SHELL|LESS)\w*|GCONV_PATH|LOCPATH|NLSPATH|PS4|PROMPT_COMMAND|EDITOR|VISUAL|PAGER|BROWSER|\w+_(?:OPTIONS|OPTS|PROXY|WRAPPER|ASKPASS|PRELOAD|HOOKS))$/i
