"""HTTP below the routes: connections, bodies, the memory that requests may hold, and the files of the page.

It knows no route.
"""
