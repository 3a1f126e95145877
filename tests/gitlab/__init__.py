"""GitLab's pipelines on this machine, without a GitLab: used by the integration tests.

`project.Project` is a git repository with a GitLab's address as its origin; `pipelines.run` runs
its pipeline, with child pipelines, by gitlab-ci-local (jobs are processes of this machine, each in
a folder of its own); `schema.errors` holds a file against GitLab's JSON schema.

It is not GitLab. It checks which jobs a pipeline has, what they hand to each other and what they
do. It does not check what only the server and its runners know: `resource_group`, `retry`,
`timeout`, protected branches and environments, approvals, tags of runners, expiry of artifacts and
`needs:pipeline`. Names of jobs must differ between child pipelines that run at the same time; the
parent's later stages run although a child failed (the result says that it failed).
"""
