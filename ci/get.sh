# Puts mvapich-stack at the pinned commit on PATH. A commit is a hash of all that it holds. Jobs of one user
# share a clone for each commit; protected pipelines have clones of their own.
missing=
for tool in git python3 flock; do command -v "$tool" > /dev/null || missing="$missing $tool"; done
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  apt-get -qq update && apt-get -qq install -y --no-install-recommends ca-certificates git python3-venv util-linux
elif [ -n "$missing" ]; then
  echo "this runner lacks$missing" >&2; exit 7
fi
# A container is gone after its job: GitLab's cache keeps what lies in the project's folder.
if [ "${CI_DISPOSABLE_ENVIRONMENT:-}" = true ]; then
  export MVSTACK_CLONES="${MVSTACK_CLONES:-$CI_PROJECT_DIR/.mvstack-cache/clones}"
  export MVSTACK_SOURCES="${MVSTACK_SOURCES:-$CI_PROJECT_DIR/.mvstack-cache/sources}"
fi
if [ -n "${MVSTACK_URL:-}" ]; then
  case "$MVSTACK_COMMIT" in *[!0-9a-f]* | "") echo "stack_commit is not a commit hash: $MVSTACK_COMMIT" >&2; exit 3 ;; esac
  [ "${CI_COMMIT_REF_PROTECTED:-false}" = true ] && clones=protected || clones=open
  clone="${MVSTACK_CLONES:-$HOME/.cache/mvapich-stack}/$clones/$MVSTACK_COMMIT"
  mkdir -p "${clone%/*}"
  (
    flock 9
    if [ ! -e "$clone/.whole" ]; then
      rm -rf "$clone"
      # a project of the same GitLab that is not public: as this job, if its settings let this project in
      login=
      case "$MVSTACK_URL" in "${CI_SERVER_URL:-none}"/*) login='!f() { echo username=gitlab-ci-token; echo "password=$CI_JOB_TOKEN"; }; f' ;; esac
      GIT_TERMINAL_PROMPT=0 git -c credential.helper="$login" clone --quiet --no-checkout "$MVSTACK_URL" "$clone" &&
        git -C "$clone" checkout --quiet --detach "$MVSTACK_COMMIT" && touch "$clone/.whole"
    fi
  ) 9> "$clone.lock" || { echo "mvapich-stack cannot be obtained: $MVSTACK_COMMIT of $MVSTACK_URL" >&2; exit 7; }
  # what no job used for a month goes
  touch "$clone"
  find "${clone%/*}" -mindepth 1 -maxdepth 1 -type d -name '[0-9a-f]*' -mtime +30 -exec rm -rf {} + || true
  PATH="$clone:$PATH"
else
  PATH="$CI_PROJECT_DIR:$PATH"
fi
export PATH
