/** The mark in place of a removed secret. */
export const SECRET_MARK = '***'

/** Removes everything that looks like a secret. Takes time in proportion to the text. */
export function withoutShapes(text: string): string {
  if (text.length < SHORTEST) return text
  const keyless = KEYS.reduce((left, key) => left.replaceAll(key, SECRET_MARK), text)
  return keyless
    .replaceAll(WEB_TOKEN, (whole: string, rest: string | undefined) => (rest === undefined ? whole : SECRET_MARK))
    .replaceAll(DATABASE, `$1${SECRET_MARK}@`)
    .replaceAll(USER_INFO, `//${SECRET_MARK}@`)
    .replaceAll(HOOKS, `$1${SECRET_MARK}`)
    .replaceAll(PRIVATE_KEY, SECRET_MARK)
    .replaceAll(/\b(Bearer|Basic)\s+[^\s"']+/gi, `$1 ${SECRET_MARK}`)
    .replaceAll(/((?:key|token|secret|password|passwd|_pat|_pass|pwd|sig)=["']?)[^&\s"']+/gi, `$1${SECRET_MARK}`)
    .replaceAll(QUOTED, `$1${SECRET_MARK}`)
    .replaceAll(NAMED, `$1${SECRET_MARK}`)
}

/** Replaces keys in a part of a command line: only keys that are a word of their own, and no part of a path. */
export function replaceKeys(text: string, shownAs: (key: string) => string): string {
  return KEYS.reduce(
    (left, key) => left.replace(key, (found, ...rest) => (isPart(found, left, rest) ? found : shownAs(found))),
    text,
  )
}

/** For a callback of `replace`: true where a match is part of a longer word. Its place is the one number among `rest`. */
function isPart(found: string, text: string, rest: readonly unknown[]): boolean {
  const at = rest.find((value) => typeof value === 'number') as number
  return PART_OF_WORD.test(text.charAt(at - 1)) || PART_OF_WORD.test(text.charAt(at + found.length))
}

const PART_OF_WORD = /[\w.~/*-]/
/** `//a@` */
const SHORTEST = 4

/**
 * True where the value holds a key, what a web address names before its host, a value behind a name such as `AccountKey=`, or
 * a header that proves who asks.
 */
export function looksSecret(value: string): boolean {
  const shapes = [PASSWORD, WEB_USER, SCHEME, DATABASE, HOOKS, PRIVATE_KEY, ...KEYS]
  if (shapes.some((shape) => value.search(shape) !== -1)) return true
  if (Array.from(value.matchAll(NAMED_PART)).some(([, name = '']) => isSecretName(name))) return true
  return Array.from(value.matchAll(WEB_TOKEN)).some(([, rest]) => rest !== undefined)
}

/** `https://token@host`: the user of a web address is mostly a key. */
const WEB_USER = /(?:https?|socks\w{0,3}):\/\/[^\s/?#"'@:]{1,2000}@/i
/** `Basic dXNlcjpwYXNz`: behind the word comes no word of a language. */
const SCHEME = /\b(?:Bearer|Basic)\s{1,5}(?=[-_.~+/A-Za-z]{0,2000}[\d=])[-_.~+/=A-Za-z0-9]{8,}/i
/** A part of a connection string, a query, or a script. A reference such as `$NAME` is no value. */
const NAMED_PART = /(?:^|[?&;,\s])([A-Za-z_][\w.-]{0,60})=([^&;,\s"'$][^&;,\s"']{5,})/g

/** `password: "abc"`, also where the quotes are escaped. */
const QUOTED =
  /((?:secret|password|passwd|passphrase|pwd)\\{0,3}["']?\s{0,5}(?:=>|:=|[:=])\s{0,5}\\{0,3}["'])[^\s"'\\]{4,}/gi
/** `aws_secret_access_key = abc...`: no ordinary word behind such a name is that long and has a digit. */
const NAMED =
  /((?:key|token|secret|password)\\{0,3}["']?\s{0,5}(?:=>|:=|[:=])\s{0,5}\\{0,3}["']?)(?=[-_.~+/=*A-Za-z]*\d)[-_.~+/=*A-Za-z0-9]{16,}/gi
/** Passwords of databases may hold characters that no other address allows. */
const DATABASE =
  /((?<![A-Za-z0-9])(?:postgres|postgresql|mysql|mariadb|mongodb|redis|rediss|amqp|amqps|mssql|sqlserver|clickhouse)(?:\+[a-z0-9]{1,10})?:\/\/)[^\s/?#"'@:]{0,100}:[^\s"'@]{1,100}@/g
const USER_INFO = /\/\/[^\s/?#"']*@/g
const PASSWORD = /\/\/[^\s/?#"'@:]*:[^\s/?#"'@]+@/
const PRIVATE_KEY =
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:[^"-]|-(?!----))*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g

/**
 * Keys as their issuers write them: the beginnings that vendors document and secret scanners publish (gitleaks above all). A
 * pattern without a beginning of its own, such as 40 hexadecimal digits, is not in the list: texts are full of them.
 */
const KEYS: readonly RegExp[] = [
  // OpenAI, Anthropic, Stripe, Groq, xAI, Perplexity, Cerebras
  /(?<![A-Za-z0-9])(?:sk|pk|rk|gsk|csk|xai|pplx)[-_][-_A-Za-z0-9*]{8,}/g,
  // Google
  /(?<![A-Za-z0-9])(?:AIza[-_A-Za-z0-9*]{8,}|(?:ya29\.|GOCSPX-|1\/\/0)[-_A-Za-z0-9]{16,})/g,
  // GitHub, GitLab
  /(?<![A-Za-z0-9])(?:gh[opusr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|gl[a-z]{2,5}-[-_.A-Za-z0-9]{20,}|GR1348941[-_A-Za-z0-9]{20,})/g,
  // AWS, Alibaba
  /(?<![A-Za-z0-9])(?:(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}|LTAI[A-Za-z0-9]{16,}|ABSK[A-Za-z0-9+/=]{40,})/g,
  // Slack
  /(?<![A-Za-z0-9])(?:xox[a-z](?:\.xox[a-z])?|xapp)-[-A-Za-z0-9]{10,}/g,
  // Hugging Face, npm, Replicate, Linear, Notion
  /(?<![A-Za-z0-9])(?:hf|api_org|npm|r8|lin_api|ntn)_[A-Za-z0-9]{16,}/g,
  // PyPI, Docker, DigitalOcean, Databricks, Vault, Doppler
  /(?<![A-Za-z0-9])(?:pypi-|dckr_[op]at_|do[opr]_v1_|dapi(?=[a-f0-9]{32})|hv[sbr]\.|dp\.[a-z]{2,5}\.)[-_A-Za-z0-9]{16,}/g,
  // Azure: client secrets of Entra
  /(?<![A-Za-z0-9])[A-Za-z0-9_~.]{3}\dQ~[-_~.A-Za-z0-9]{31,}/g,
  // Shopify, PlanetScale, Shippo, Duffel, Sentry, Grafana, 1Password, Figma, Vercel, LangSmith, Together, Fly
  /(?<![A-Za-z0-9])(?:shp(?:at|ca|pa|ss)_|pscale_[a-z]{2,5}_|(?:shippo|duffel)_(?:live|test)_|sntry[su]_|gl(?:c|sa)_|ops_(?=eyJ)|figd_|vercel_blob_rw_|lsv2_[a-z]{2}_|tgp_v1_|f[mo]\d[ar]?_)[-_A-Za-z0-9+/=]{20,}/g,
  // Sonar, Sourcegraph, Supabase, RubyGems, ReadMe, Prefect, Clojars, Pinecone, E2B, Jina, Netlify, Render, Typeform, Postman, Tavily, NVIDIA
  /(?<![A-Za-z0-9])(?:(?:sq[apu]|sgp|sbp|sb_secret|rubygems|rdme|pnu|CLOJARS|pcsk|e2b|jina|nfp|rnd|tfp)_|(?:PMAK|tvly(?:-dev)?|nvapi)-)[A-Za-z0-9]{20,}/g,
  // New Relic, Brevo, Mailgun, Pulumi, Heroku, Adobe, Infracost, Octopus, age, Flutterwave, Square, Plaid, OpenShift
  /(?<![A-Za-z0-9])(?:NR[A-Z]{2}-|x(?:keys|smtps)ib-|(?:pub)?key-(?=[a-f0-9]{32})|pul-(?=[a-f0-9]{40})|HRKU-|(?:p8e|ico)-(?=[A-Za-z0-9]{32})|API-(?=[A-Z0-9]{26})|AGE-SECRET-KEY-1|FLWSECK(?:_TEST)?-|sq0[a-z]{3}-|access-(?:sandbox|development|production)-|sha256~)[-_A-Za-z0-9]{12,}/g,
  // Atlassian, Meta and Square, JFrog, EasyPost, Twilio, Yandex, Airtable, Dynatrace, Telegram, Mailchimp, Terraform
  /(?<![A-Za-z0-9])(?:(?:ATATT3|ATCTT3|ATBB)[-_=A-Za-z0-9]{20,}|EAA[A-Z][-_A-Za-z0-9]{40,}|AKCp[A-Za-z0-9]{40,}|EZ[AT]K[A-Za-z0-9]{30,}|SK[0-9a-f]{32}|AQVN[-_A-Za-z0-9]{30,}|pat[A-Za-z0-9]{14}\.[a-f0-9]{64}|dt0c01\.[.A-Z0-9]{24,}|\d{5,16}:A[-_A-Za-z0-9]{34}|[a-f0-9]{32}-us\d{1,2}(?!\d)|[A-Za-z0-9]{14}\.atlasv1\.[-_=A-Za-z0-9]{40,})/g,
]

/** Addresses that are a secret themselves: anybody who has one may write there. */
const HOOKS =
  /(?<![A-Za-z0-9])(hooks\.slack\.com\/(?:services|workflows|triggers)\/|discord(?:app)?\.com\/api\/webhooks\/)[-_/A-Za-z0-9]{20,}/g

/**
 * JSON web tokens and those of SendGrid, if the first dot is followed by more. Without it the pattern skips the whole run of
 * characters: the run may hold a thousand beginnings of tokens, all of them incomplete.
 */
const WEB_TOKEN =
  /(?<![A-Za-z0-9])(?:eyJ[-_A-Za-z0-9]{8,}|SG\.[-_A-Za-z0-9]{16,})(\.[-_A-Za-z0-9]{8,}(?:\.[-_A-Za-z0-9]*){0,3})?/g

/** True for the name of a variable, header or field that holds a secret: `GITHUB_PAT`, `x-api-key`, `dbPassword`. */
export function isSecretName(name: string): boolean {
  const words = wordsOf(name)
  if (words.length === 1 && PLACES.has(words[0] ?? '')) return false
  return words.some(isSecretWord) || SESSIONS.test(words.join('_'))
}

/** True where an option of this name takes a secret: `--api-key` does, `--token-file` and `--pass-with-no-tests` do not. */
export function isSecretOption(name: string): boolean {
  return isSecretWord(wordsOf(name).at(-1) ?? '')
}

function wordsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
    .filter((word) => word !== '')
}

function isSecretWord(word: string): boolean {
  return WORDS.has(word) || PARTS.test(word)
}

/** Variables of shells that hold directories. */
const PLACES: ReadonlySet<string> = new Set(['PWD', 'OLDPWD'])
const WORDS: ReadonlySet<string> = new Set([
  ...['KEY', 'KEYS', 'PASS', 'PWD', 'PW', 'PAT', 'AUTH', 'AUTHORIZATION', 'BEARER', 'COOKIE', 'COOKIES', 'JWT'],
  ...['SIG', 'SIGNATURE', 'CRED', 'CREDS', 'DSN'],
])
/** Words that are long enough to mean a secret inside of a longer word, as in `PGPASSWORD`; `MAX_TOKENS` is a number. */
const PARTS =
  /PASSW(?:OR)?D|PASSPHRASE|SECRET|TOKEN(?!S|IZ)|CREDENTIAL|(?:API|ACCESS|ACCOUNT|PRIVATE|SSH)KEYS?$|^(?:SSH|DB|PG|SQL|MYSQL|REDIS|LDAP|BIND|SMTP|MAIL|FTP|ROOT|ADMIN|USER)P(?:ASS|W)$/
/** Session variables of password managers. */
const SESSIONS = /^(?:BW|OP)_SESSION/
